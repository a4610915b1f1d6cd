#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::wire {

/// Largest count of lines, entries or matches, and largest line number. Sums of several do not overflow, and every
/// client can represent it.
inline constexpr std::uint64_t k_max_count = std::uint64_t{1} << 53U;

/// A field that is missing, has the wrong type or is out of range. what() is its path, such as "until.port".
class BadField : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A JSON value from the other program, with its place in the message. Host and agent do not trust each other, so each
/// read checks type and range, and throws `BadField` if the value does not fit. The JSON value and the enclosing
/// `Field` must outlive this.
class Field {
 public:
  /// The head of a message.
  explicit Field(const nlohmann::json& value) : m_value(&value) {}

  // A member or an element refers to this object, so none can be taken from a temporary.
  /// A member of this object.
  [[nodiscard]] Field at(const char* key) const&;
  /// A member of this object; nullopt if it is absent.
  [[nodiscard]] std::optional<Field> find(const char* key) const&;
  /// The elements of this array.
  [[nodiscard]] std::vector<Field> elements(std::size_t max = SIZE_MAX) const&;
  Field at(const char* key) const&& = delete;
  std::optional<Field> find(const char* key) const&& = delete;
  std::vector<Field> elements(std::size_t max = SIZE_MAX) const&& = delete;

  [[nodiscard]] std::uint64_t number(std::uint64_t max = k_max_count) const;
  /// A number from -max to max.
  [[nodiscard]] std::int64_t signed_number(std::uint64_t max = k_max_count) const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] const std::string& text() const;
  /// A text for which `is_valid` returns true, or an empty text.
  [[nodiscard]] const std::string& name(bool (*is_valid)(std::string_view)) const;
  /// The value of an enumeration whose `from_name` accepts this text.
  template <typename FromName>
  [[nodiscard]] auto word(FromName from_name) const {
    const auto value = from_name(std::string_view(text()));
    if (!value) {
      fail_here();
    }
    return *value;
  }
  /// The elements of an array of exactly N numbers.
  template <std::size_t N>
  [[nodiscard]] std::array<std::uint64_t, N> numbers(std::uint64_t max = UINT64_MAX) const {
    std::array<std::uint64_t, N> values{};
    const std::vector<Field> found = elements(N);
    if (found.size() != N) {
      fail_here();
    }
    for (std::size_t i = 0; i < N; ++i) {
      values[i] = found[i].number(max);
    }
    return values;
  }

  [[noreturn]] void fail_here() const;

 private:
  Field(const nlohmann::json& value, const Field* parent, const char* key, std::size_t index)
      : m_value(&value), m_parent(parent), m_key(key), m_index(index) {}
  [[nodiscard]] std::string path() const;

  const nlohmann::json* m_value;
  const Field* m_parent = nullptr;  ///< null for the head of a message
  const char* m_key = nullptr;      ///< null for an element of an array
  std::size_t m_index = 0;
};

/// Calls `read` with the head of a message. Returns `code` with the path of the bad field if the message is malformed.
template <typename Read>
auto read_fields(const nlohmann::json& head, ErrorCode code, Read read)
    -> Result<decltype(read(std::declval<const Field&>()))> {
  try {
    const Field field(head);
    return read(field);
  } catch (const BadField& bad) {
    return fail(code, std::string("Malformed message: ") + bad.what());
  }
}

}  // namespace dockbridge::wire
