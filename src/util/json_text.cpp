#include "util/json_text.hpp"

#include <fmt/format.h>

#include <array>

#include "util/text.hpp"

namespace dockbridge {

namespace {

using nlohmann::json;

constexpr std::array<bool, 256> special_characters() {
  std::array<bool, 256> special{};
  for (std::size_t c = 0; c < 0x20; ++c) {
    special[c] = true;
  }
  special['"'] = special['\\'] = true;
  return special;
}

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    default:
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
}

void append_text(std::string& out, std::string_view text) {
  static constexpr auto k_special = special_characters();
  if (!is_valid_utf8(text)) {
    append_text(out, to_valid_utf8(text).text);
    return;
  }
  out.push_back('"');
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (k_special[static_cast<unsigned char>(text[i])]) {
      out.append(text, begin, i - begin);
      append_escape(out, text[i]);
      begin = i + 1;
    }
  }
  out.append(text, begin);
  out.push_back('"');
}

void append(std::string& out, const json& value) {
  switch (value.type()) {
    case json::value_t::object: {
      out.push_back('{');
      const char* separator = "";
      for (const auto& entry : value.items()) {
        out += separator;
        append_text(out, entry.key());
        out.push_back(':');
        append(out, entry.value());
        separator = ",";
      }
      out.push_back('}');
      return;
    }
    case json::value_t::array: {
      out.push_back('[');
      const char* separator = "";
      for (const json& entry : value) {
        out += separator;
        append(out, entry);
        separator = ",";
      }
      out.push_back(']');
      return;
    }
    case json::value_t::string:
      append_text(out, value.get_ref<const std::string&>());
      return;
    case json::value_t::number_integer:
      out += fmt::format_int(value.get<std::int64_t>()).c_str();
      return;
    case json::value_t::number_unsigned:
      out += fmt::format_int(value.get<std::uint64_t>()).c_str();
      return;
    case json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case json::value_t::number_float:
    case json::value_t::binary:
    case json::value_t::discarded:
    case json::value_t::null:
      break;
  }
  out += value.dump();
}

}  // namespace

std::string json_text(const json& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace dockbridge
