#pragma once

#include <cstdint>
#include <string_view>

#include "wire/terminal.hpp"

namespace dockbridge::agent {

// Between a keeper and the screen process that it started, both of one build: control packets (control.hpp).

/// Keeper to screen.
enum class ScreenOrder : std::uint8_t {
  show = 1,    ///< payload: output
  press = 2,   ///< payload: names of keys, one space between; answered by `pressed`
  resize = 3,  ///< value: as `packed_size`
  store = 4,   ///< write the screen to its file; answered by `stored`
};

// Beside names of keys: what a terminal types before and behind pasted text, if the program has asked for that.
inline constexpr std::string_view k_paste_begins = "<paste>";
inline constexpr std::string_view k_paste_ends = "</paste>";

/// Screen to keeper.
enum class ScreenAnswer : std::uint8_t {
  typed = 1,  ///< payload: goes to the program
  stored = 2,
  pressed = 3,  ///< payload: what the keys come to; goes to the program
};

/// Columns in the lower, rows in the upper half.
constexpr std::uint32_t packed_size(wire::TerminalSize size) {
  return size.columns | static_cast<std::uint32_t>(size.rows) << 16U;
}
constexpr wire::TerminalSize unpacked_size(std::uint32_t value) {
  return {static_cast<std::uint16_t>(value & 0xFFFFU), static_cast<std::uint16_t>(value >> 16U)};
}

/// Serves the keeper on stdin until that hangs up; stdout is the directory that the file `name` is in. One that is
/// stuck in its work for too long ends by a signal: the keeper starts another.
/// `shown` is how much output earlier screen processes of the terminal were given.
int serve_as_screen(const char* name, wire::TerminalSize size, std::uint64_t shown);

}  // namespace dockbridge::agent
