#pragma once

#include <cstdint>
#include <string_view>

#include "wire/terminal.hpp"

namespace dockbridge::agent {

// A keeper and its screen process exchange control packets (packets.hpp) of these types. Both have the same build.

/// Keeper to screen.
enum class ScreenOrder : std::uint8_t {
  show = 1,    ///< payload: output
  press = 2,   ///< payload: names of keys with one space between; reply: `pressed`
  resize = 3,  ///< value: see `packed_size`
  store = 4,   ///< write the screen to its file; reply: `stored`
};

// Used like names of keys: the marks before and behind pasted text, if the program has enabled bracketed paste.
inline constexpr std::string_view k_paste_begins = "<paste>";
inline constexpr std::string_view k_paste_ends = "</paste>";

/// Screen to keeper.
enum class ScreenReport : std::uint8_t {
  typed = 1,  ///< payload: replies of the terminal, input for the program
  stored = 2,
  pressed = 3,  ///< payload: encoded keys, input for the program
};

/// Columns are in the lower half, rows in the upper half.
constexpr std::uint32_t packed_size(wire::TerminalSize size) {
  return size.columns | static_cast<std::uint32_t>(size.rows) << 16U;
}
constexpr wire::TerminalSize unpacked_size(std::uint32_t value) {
  return {static_cast<std::uint16_t>(value & 0xFFFFU), static_cast<std::uint16_t>(value >> 16U)};
}

}  // namespace dockbridge::agent
