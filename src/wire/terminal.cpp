#include "wire/terminal.hpp"

#include <charconv>
#include <utility>

#include "wire/process_state.hpp"

namespace dockbridge::wire {

namespace {

using Kind = Key::Kind;

constexpr std::pair<std::string_view, Kind> k_named[] = {{"enter", Kind::enter},
                                                         {"return", Kind::enter},
                                                         {"tab", Kind::tab},
                                                         {"backspace", Kind::backspace},
                                                         {"escape", Kind::escape},
                                                         {"esc", Kind::escape},
                                                         {"up", Kind::up},
                                                         {"down", Kind::down},
                                                         {"left", Kind::left},
                                                         {"right", Kind::right},
                                                         {"insert", Kind::insert},
                                                         {"delete", Kind::erase},
                                                         {"home", Kind::home},
                                                         {"end", Kind::end},
                                                         {"page-up", Kind::page_up},
                                                         {"pageup", Kind::page_up},
                                                         {"page-down", Kind::page_down},
                                                         {"pagedown", Kind::page_down}};

constexpr std::uint32_t k_function_keys = 12;

std::optional<std::uint32_t> function_number(std::string_view text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  if (text.size() < 2 || text.front() != 'f') {
    return std::nullopt;
  }
  const auto parsed = std::from_chars(text.data() + 1, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number >= 1 && number <= k_function_keys
             ? std::optional(number)
             : std::nullopt;
}

std::uint16_t positive_side_from(const Field& field) {
  const auto side = static_cast<std::uint16_t>(field.number(k_max_terminal_side));
  if (side == 0) {
    field.fail_here();
  }
  return side;
}

}  // namespace

nlohmann::json to_json(const TerminalSize& size) {
  return nlohmann::json::array({size.columns, size.rows});
}

TerminalSize TerminalSize::from_json(const Field& field) {
  const auto sides = field.elements(2);
  if (sides.size() != 2) {
    field.fail_here();
  }
  return {positive_side_from(sides[0]), positive_side_from(sides[1])};
}

void ScreenFacts::visit(Codec& codec) {
  const AtMost side{k_max_terminal_side};
  codec("columns", size.columns, side);
  codec("rows", size.rows, side);
  Offsets cursor{cursor_row, cursor_column};
  codec("cursor", cursor, OffsetsAtMost{side.max});
  if (codec.is_reading()) {
    cursor_row = static_cast<std::uint16_t>(cursor.first);
    cursor_column = static_cast<std::uint16_t>(cursor.second);
  }
  codec("cursorVisible", cursor_visible);
  codec("alternate", alternate);
  codec.lenient("addressed", addressed, AtMost{k_max_stream_bytes});  // absent in the screen of an older keeper
}

std::optional<Key> parse_key(std::string_view text) {
  Key key;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [prefix, flag] :
         {std::pair("ctrl-", &Key::ctrl), std::pair("alt-", &Key::alt), std::pair("shift-", &Key::shift)}) {
      // "ctrl-" alone is not a prefix. In "ctrl--", the second "-" is the key.
      if (text.starts_with(prefix) && text.size() > std::string_view(prefix).size()) {
        key.*flag = true;
        text.remove_prefix(std::string_view(prefix).size());
        more = true;
      }
    }
  }
  for (const auto& [name, kind] : k_named) {
    if (text == name) {
      key.kind = kind;
      return key;
    }
  }
  if (const auto number = function_number(text)) {
    key.kind = Kind::function;
    key.number = *number;
    return key;
  }
  if (text == "space") {
    text = " ";
  }
  if (text.size() != 1 || text.front() < ' ' || text.front() > '~') {
    return std::nullopt;
  }
  key.number = static_cast<unsigned char>(text.front());
  return key;
}

}  // namespace dockbridge::wire
