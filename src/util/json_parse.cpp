#include "util/json_parse.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "util/json_memory.hpp"
#include "util/json_plain.hpp"
#include "util/text.hpp"

namespace dockbridge {

namespace {

using nlohmann::json;

constexpr std::uint32_t k_high_surrogate = 0xD800;
constexpr std::uint32_t k_low_surrogate = 0xDC00;
constexpr std::uint32_t k_after_surrogates = 0xE000;
/// Smallest amount of memory that is claimed at once.
constexpr std::size_t k_claim_bytes = 16UL * 1024;
/// Shorter numbers are copied without being counted, because the copy is freed before the next value.
constexpr std::size_t k_long_number = 4096;
/// Longest UTF-8 form of the character that an escape denotes.
constexpr std::size_t k_max_escape_bytes = 4;

void append_utf8(std::string& out, std::uint32_t code) {
  const auto push = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0U | code >> 6U);
    push(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    push(0xE0U | code >> 12U);
    push(0x80U | (code >> 6U & 0x3FU));
    push(0x80U | (code & 0x3FU));
  } else {
    push(0xF0U | code >> 18U);
    push(0x80U | (code >> 12U & 0x3FU));
    push(0x80U | (code >> 6U & 0x3FU));
    push(0x80U | (code & 0x3FU));
  }
}

/// Each `read_` function removes its subject from the front of the text; false if the text does not begin with it.
class Parser {
 public:
  Parser(std::string_view text, int max_depth, const JsonBudget& budget)
      : m_rest(text), m_levels_left(max_depth), m_budget(budget) {}

  ParsedJson parse() {
    constexpr std::string_view k_byte_order_mark = "\xEF\xBB\xBF";
    if (m_rest.starts_with(k_byte_order_mark)) {
      m_rest.remove_prefix(k_byte_order_mark.size());
    }
    json value;
    const bool good = read_value(value) && next() == '\0' && m_rest.empty();
    if (good) {
      return {std::move(value)};
    }
    return {json(json::value_t::discarded), m_problem == Problem::none ? Problem::not_json : m_problem};
  }

 private:
  using Problem = ParsedJson::Problem;

  /// Counts memory before it is allocated; false if it exceeds the budget. Memory that is freed during parsing stays
  /// counted, so the count is never less than what is in use.
  bool allocate(std::size_t bytes) {
    m_bytes += bytes;
    return m_bytes <= m_claimed || claim_more();
  }

  bool claim_more() {
    if (m_bytes > m_budget.max_bytes) {
      m_problem = Problem::too_large;
      return false;
    }
    const std::size_t more = std::max(m_bytes - m_claimed, k_claim_bytes);
    if (m_budget.claim && !m_budget.claim(more)) {
      m_problem = Problem::no_room;
      return false;
    }
    m_claimed += more;
    return true;
  }

  /// The next character that is not white space, NUL at the end.
  char next() {
    const std::size_t at = m_rest.find_first_not_of(" \t\n\r");
    m_rest.remove_prefix(at == std::string_view::npos ? m_rest.size() : at);
    return m_rest.empty() ? '\0' : m_rest.front();
  }

  bool read_word(std::string_view word) {
    const bool there = m_rest.starts_with(word);
    m_rest.remove_prefix(there ? word.size() : 0);
    return there;
  }

  bool read_value(json& value) {
    switch (next()) {
      case '{':
        return descend([&] { return read_object(value); });
      case '[':
        return descend([&] { return read_array(value); });
      case '"': {
        std::string text;
        const bool good = allocate(k_json_string_bytes) && read_text(text);
        value = std::move(text);
        return good;
      }
      case 't':
        value = true;
        return read_word("true");
      case 'f':
        value = false;
        return read_word("false");
      case 'n':
        value = nullptr;
        return read_word("null");
      default:
        return read_number(value);
    }
  }

  template <typename Read>
  bool descend(Read read) {
    if (m_levels_left == 0) {
      m_problem = Problem::too_deep;
      return false;
    }
    --m_levels_left;
    m_rest.remove_prefix(1);
    const bool good = read();
    ++m_levels_left;
    return good;
  }

  bool read_object(json& value) {
    if (!allocate(k_json_object_bytes)) {
      return false;
    }
    value = json::object();
    auto& members = value.get_ref<json::object_t&>();
    if (next() == '}') {
      return read_word("}");
    }
    while (true) {
      std::string key;
      if (next() != '"' || !allocate(k_json_member_bytes) || !read_text(key) || next() != ':' || !read_word(":") ||
          !read_value(members[std::move(key)])) {
        return false;
      }
      if (next() != ',') {
        return read_word("}");
      }
      m_rest.remove_prefix(1);
    }
  }

  bool read_array(json& value) {
    if (!allocate(k_json_array_bytes)) {
      return false;
    }
    value = json::array();
    auto& elements = value.get_ref<json::array_t&>();
    if (next() == ']') {
      return read_word("]");
    }
    while (true) {
      if (!make_room_for_element(elements) || !read_value(elements.emplace_back())) {
        return false;
      }
      if (next() != ',') {
        return read_word("]");
      }
      m_rest.remove_prefix(1);
    }
  }

  bool make_room_for_element(json::array_t& elements) {
    constexpr std::size_t k_allocator_bytes = 16;
    if (elements.size() < elements.capacity()) {
      return true;
    }
    const std::size_t capacity = std::max<std::size_t>(2 * elements.capacity(), 1);
    if (!allocate(capacity * k_json_value_bytes + k_allocator_bytes)) {
      return false;
    }
    elements.reserve(capacity);
    return true;
  }

  /// Bytes up to the closing quote, with escapes as written. The decoded text is never longer.
  std::size_t raw_text_length() const {
    std::size_t at = 0;
    while (at < m_rest.size()) {
      at += plain_json_length(m_rest.substr(at));
      if (at >= m_rest.size() || m_rest[at] != '\\') {
        break;
      }
      at += 2;
    }
    return std::min(at, m_rest.size());
  }

  /// Reserves memory once for each long text, so that it never grows by copying.
  bool make_room_for_text(std::string& text, std::size_t plain) {
    const bool is_last = plain < m_rest.size() && m_rest[plain] == '"';
    const std::size_t escape = is_last ? 0 : k_max_escape_bytes;
    if (text.size() + plain + escape <= text.capacity()) {
      return true;
    }
    // A string object grows from its 15 inline bytes to 30.
    const std::size_t capacity =
        std::max<std::size_t>(text.size() + (is_last ? plain : raw_text_length() + escape), 30);
    if (!allocate(string_heap_bytes(capacity))) {
      return false;
    }
    text.reserve(capacity);
    return true;
  }

  bool read_text(std::string& text) {
    m_rest.remove_prefix(1);
    while (true) {
      const std::size_t plain = plain_json_length(m_rest);
      if (!make_room_for_text(text, plain)) {
        return false;
      }
      text.append(m_rest, 0, plain);
      m_rest.remove_prefix(plain);
      if (read_word("\"")) {
        return is_valid_utf8(text);
      }
      if (!read_escape(text)) {
        return false;
      }
    }
  }

  bool read_escape(std::string& text) {
    constexpr std::string_view k_names = "\"\\/bfnrt";
    constexpr std::string_view k_meanings = "\"\\/\b\f\n\r\t";
    if (m_rest.size() < 2 || m_rest[0] != '\\') {
      return false;
    }
    const char name = m_rest[1];
    m_rest.remove_prefix(2);
    if (name == 'u') {
      return read_code(text);
    }
    const std::size_t known = k_names.find(name);
    text.push_back(known == std::string_view::npos ? '\0' : k_meanings[known]);
    return known != std::string_view::npos;
  }

  bool read_code(std::string& text) {
    std::uint32_t code = 0;
    if (!read_hex(code) || (code >= k_low_surrogate && code < k_after_surrogates)) {
      return false;
    }
    if (code >= k_high_surrogate && code < k_low_surrogate) {
      std::uint32_t low = 0;
      if (!read_word("\\u") || !read_hex(low) || low < k_low_surrogate || low >= k_after_surrogates) {
        return false;
      }
      code = 0x10000U + ((code - k_high_surrogate) << 10U) + (low - k_low_surrogate);
    }
    append_utf8(text, code);
    return true;
  }

  bool read_hex(std::uint32_t& code) {
    constexpr std::size_t k_digits = 4;
    const std::string_view digits = m_rest.substr(0, k_digits);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    const bool good = digits.size() == k_digits && read.ec == std::errc() && read.ptr == digits.data() + k_digits;
    m_rest.remove_prefix(good ? k_digits : 0);
    return good;
  }

  std::size_t digits_at(std::size_t at) const {
    const std::size_t end = m_rest.find_first_not_of("0123456789", at);
    return (end == std::string_view::npos ? m_rest.size() : end) - at;
  }

  bool read_number(json& value) {
    const std::size_t sign = m_rest.starts_with('-') ? 1 : 0;
    std::size_t end = sign + digits_at(sign);
    if (end == sign || (m_rest[sign] == '0' && end > sign + 1)) {
      return false;
    }
    bool whole = true;
    if (end < m_rest.size() && m_rest[end] == '.') {
      const std::size_t digits = digits_at(end + 1);
      end += 1 + digits;
      whole = false;
      if (digits == 0) {
        return false;
      }
    }
    if (end < m_rest.size() && (m_rest[end] == 'e' || m_rest[end] == 'E')) {
      ++end;
      end += end < m_rest.size() && (m_rest[end] == '+' || m_rest[end] == '-') ? 1 : 0;
      const std::size_t digits = digits_at(end);
      end += digits;
      whole = false;
      if (digits == 0) {
        return false;
      }
    }
    if (end > k_long_number && !allocate(string_heap_bytes(end))) {
      return false;
    }
    const std::string number(m_rest.substr(0, end));
    m_rest.remove_prefix(end);
    return set_number(value, number, whole);
  }

  static bool set_number(json& value, const std::string& number, bool whole) {
    const char* begin = number.data();
    const char* end = begin + number.size();
    std::uint64_t natural = 0;
    std::int64_t integer = 0;
    if (whole && *begin != '-' && std::from_chars(begin, end, natural).ec == std::errc()) {
      value = natural;
      return true;
    }
    if (whole && *begin == '-' && std::from_chars(begin, end, integer).ec == std::errc()) {
      value = integer;
      return true;
    }
    const double real = std::strtod(begin, nullptr);
    value = real;
    return std::isfinite(real);
  }

  std::string_view m_rest;
  int m_levels_left;
  const JsonBudget& m_budget;
  std::size_t m_bytes = 0;
  std::size_t m_claimed = 0;
  Problem m_problem = Problem::none;
};

}  // namespace

ParsedJson parse_json_text(std::string_view text, int max_depth, const JsonBudget& budget) {
  return Parser(text, max_depth, budget).parse();
}

}  // namespace dockbridge
