#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "wire/codec.hpp"

namespace dockbridge::wire {

inline constexpr std::uint16_t k_max_terminal_side = 500;

/// In JSON, an array: `[columns, rows]`, each at least 1.
struct TerminalSize {
  std::uint16_t columns = 0;
  std::uint16_t rows = 0;

  static TerminalSize from_json(const Field& field);
};
nlohmann::json to_json(const TerminalSize& size);

/// Used if no size is requested or known.
inline constexpr TerminalSize k_default_terminal{120, 40};

/// Properties of a terminal's screen other than its text. Rows and columns count from 0.
struct ScreenFacts {
  TerminalSize size;
  std::uint16_t cursor_row = 0;
  std::uint16_t cursor_column = 0;
  bool cursor_visible = true;
  bool alternate = false;  ///< a full-screen program uses the alternate screen
  /// Bytes of output when the program last positioned the cursor or cleared the screen; 0 means never.
  std::uint64_t addressed = 0;

  void visit(Codec& codec);
};

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
  std::uint32_t number = 0;  ///< the character, or the number of the function key
  bool shift = false;
  bool alt = false;
  bool ctrl = false;
};

/// "up", "ctrl-c", "alt-shift-f5", "x".
std::optional<Key> parse_key(std::string_view text);

/// Names that `parse_key` accepts, for people.
inline constexpr std::string_view k_key_names =
    "enter, tab, space, backspace, escape, up, down, left, right, home, end, page-up, page-down, insert, delete, f1 to "
    "f12, one printable ASCII character, and any of them after ctrl-, alt- or shift-";

}  // namespace dockbridge::wire
