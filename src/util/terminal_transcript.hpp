#pragma once

#include <string>
#include <string_view>

namespace dockbridge {

/// A piece of the output of a program on a terminal, with its context.
struct TerminalPiece {
  std::string_view before;   ///< the latest output before the piece; shows the line that the piece continues
  std::string_view printed;  ///< valid UTF-8
  int columns = 0;
  int rows = 0;
  bool from_start = false;  ///< the piece is the start of the output
};

/// The lines that a piece of output leaves on a terminal, without the width of the terminal.
struct TerminalTranscript {
  /// Carriage returns, backspaces, moves and erasures are applied. Excludes text on the alternate screen, and text that
  /// was placed at a row of the screen instead of printed after other lines.
  std::string text;
  /// Text of the first line that was there before the piece: a prompt.
  std::string prompt{};
  /// False if lines above the piece were changed, or the program is drawing on the screen: it has positioned the cursor
  /// or cleared the screen, and has not printed a line after the last row since.
  bool is_complete = true;
};

/// Memory is bounded by the length of the piece and a constant.
TerminalTranscript transcribe(const TerminalPiece& piece);

}  // namespace dockbridge
