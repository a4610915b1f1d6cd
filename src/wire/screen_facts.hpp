#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "error/error.hpp"
#include "wire/fields.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::wire {

/// Properties of a terminal's screen other than its text. Rows and columns count from 0.
struct ScreenFacts {
  TerminalSize size;
  std::uint16_t cursor_row = 0;
  std::uint16_t cursor_column = 0;
  bool cursor_visible = true;
  bool alternate = false;  ///< a full-screen program uses the alternate screen
  /// Bytes of output when the program last moved the cursor to a place of the screen, or cleared it; 0: never.
  std::uint64_t addressed = 0;

  static ScreenFacts from_json(const Field& field);
};

nlohmann::json to_json(const ScreenFacts& facts);
/// Checks types and ranges. Neither the stored file nor the agent is trusted.
Result<ScreenFacts> screen_facts_from_json(const nlohmann::json& value);

}  // namespace dockbridge::wire
