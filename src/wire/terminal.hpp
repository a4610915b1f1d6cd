#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "wire/fields.hpp"

namespace dockbridge::wire {

struct TerminalSize {
  std::uint16_t columns = 0;
  std::uint16_t rows = 0;
};
inline constexpr std::uint16_t k_largest_terminal_side = 500;

/// `[columns, rows]`, each from 1 on.
nlohmann::json to_json(const TerminalSize& size);
TerminalSize terminal_size_from(const Field& field);

/// A key of a terminal's keyboard.
struct Key {
  enum class Kind : std::uint8_t {
    character,
    function,
    enter,
    tab,
    backspace,
    escape,
    up,
    down,
    left,
    right,
    insert,
    erase,
    home,
    end,
    page_up,
    page_down,
  };
  Kind kind = Kind::character;
  std::uint32_t number = 0;  ///< the character, or which function key
  bool shift = false;
  bool alt = false;
  bool ctrl = false;
};

/// "up", "ctrl-c", "alt-shift-f5", "x".
std::optional<Key> parse_key(std::string_view text);

/// What `parse_key` takes, for people.
inline constexpr std::string_view k_key_names =
    "enter, tab, space, backspace, escape, up, down, left, right, home, end, page-up, page-down, insert, delete, f1 to "
    "f12, one printable ASCII character, and any of them after ctrl-, alt- or shift-";

}  // namespace dockbridge::wire
