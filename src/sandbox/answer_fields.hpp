#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::sandbox {

// Reads fields of an agent's reply. The agent is not trusted, so each number is checked against its range and each text
// against its format. A missing field, a wrong type or a value out of range throws BadAnswer.

struct BadAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Largest count of lines, entries or matches, and largest line number. Sums of several do not overflow, and every
/// client can represent it.
inline constexpr std::uint64_t k_max_count = std::uint64_t{1} << 53U;
inline constexpr std::uint64_t k_max_file_bytes = INT64_MAX;

std::uint64_t number_of(const nlohmann::json& value, std::uint64_t most = k_max_count);
std::uint64_t number_in(const nlohmann::json& head, const char* key, std::uint64_t most = k_max_count);
/// A number from -most to most.
std::int64_t signed_in(const nlohmann::json& head, const char* key, std::uint64_t most = k_max_count);
bool flag_in(const nlohmann::json& head, const char* key);
std::string text_in(const nlohmann::json& head, const char* key);
/// A text that is one of these words.
std::string word_in(const nlohmann::json& head, const char* key, const std::vector<std::string_view>& words);
/// A text for which `is_valid` returns true, or an empty text.
std::string name_in(const nlohmann::json& head, const char* key, bool (*is_valid)(std::string_view));
/// Sentences for people: the first few, each as one printable line of limited length.
std::vector<std::string> notes_in(const nlohmann::json& head, const char* key);

}  // namespace dockbridge::sandbox
