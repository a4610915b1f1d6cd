#include "sandbox/answer_fields.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr std::size_t k_max_notes = 20;
constexpr std::size_t k_max_note_bytes = 1000;

const json& field(const json& head, const char* key) {
  const auto found = head.find(key);
  return found != head.end() ? *found : throw BadAnswer(key);
}

const std::string& text_of(const json& value, const char* key) {
  return value.is_string() ? value.get_ref<const std::string&>() : throw BadAnswer(key);
}

}  // namespace

std::uint64_t number_of(const json& value, std::uint64_t most) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= most ? value.get<std::uint64_t>()
                                                                          : throw BadAnswer("number");
}

std::uint64_t number_in(const json& head, const char* key, std::uint64_t most) {
  return number_of(field(head, key), most);
}

std::int64_t signed_in(const json& head, const char* key, std::uint64_t most) {
  const json& value = field(head, key);
  if (value.is_number_unsigned() || !value.is_number_integer()) {
    return static_cast<std::int64_t>(number_of(value, most));
  }
  const auto number = value.get<std::int64_t>();
  return number >= -static_cast<std::int64_t>(most) ? number : throw BadAnswer(key);
}

bool flag_in(const json& head, const char* key) {
  const json& value = field(head, key);
  return value.is_boolean() ? value.get<bool>() : throw BadAnswer(key);
}

std::string text_in(const json& head, const char* key) {
  return text_of(field(head, key), key);
}

std::string word_in(const json& head, const char* key, const std::vector<std::string_view>& words) {
  const std::string& word = text_of(field(head, key), key);
  return std::find(words.begin(), words.end(), word) != words.end() ? word : throw BadAnswer(key);
}

std::string name_in(const json& head, const char* key, bool (*is_valid)(std::string_view)) {
  const std::string& name = text_of(field(head, key), key);
  return name.empty() || is_valid(name) ? name : throw BadAnswer(key);
}

std::vector<std::string> notes_in(const json& head, const char* key) {
  const json& values = field(head, key);
  if (!values.is_array()) {
    throw BadAnswer(key);
  }
  std::vector<std::string> notes;
  for (const json& value : values) {
    if (notes.size() < k_max_notes) {
      notes.push_back(printable_line(text_of(value, key), k_max_note_bytes));
    }
  }
  return notes;
}

}  // namespace dockbridge::sandbox
