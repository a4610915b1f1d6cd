#include "util/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "util/json_plain.hpp"
#include "util/text.hpp"

namespace dockbridge {

namespace {

using nlohmann::json;

constexpr std::size_t k_long_text = 16 * 1024;

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
  if (!is_valid_utf8(text)) {
    append_text(out, to_valid_utf8(text).text);
    return;
  }
  if (text.size() > k_long_text) {
    out.reserve(out.size() + text.size() + text.size() / 16);  // most long texts are lines
  }
  out.push_back('"');
  while (true) {
    const std::size_t plain = plain_json_length(text);
    out.append(text, 0, plain);
    text.remove_prefix(plain);
    if (text.empty()) {
      break;
    }
    append_escape(out, text.front());
    text.remove_prefix(1);
  }
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
    case json::value_t::binary: {
      const auto& text = value.get_binary();
      out.append(text.begin(), text.end());
      return;
    }
    case json::value_t::number_float:
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

json with_known_text(const std::string& text) {
  return json::binary({text.begin(), text.end()});  // JSON has no other use for binary values
}

}  // namespace dockbridge
