#pragma once

#include <string>
#include <string_view>

namespace dockbridge {

/// A piece of what a program printed on a terminal, and where it stands.
struct TerminalPiece {
  std::string_view before;   ///< some of the output before it, to find what stands on the line that it continues
  std::string_view printed;  ///< valid UTF-8
  int columns = 0;
  int rows = 0;
  bool from_start = false;  ///< nothing was printed before it
};

/// The lines that a piece of output leaves on a terminal, without the width of the terminal.
struct TerminalTranscript {
  /// Carriage returns, backspaces, moves and erasures are applied. Left out: what was printed on the alternate screen,
  /// and what was placed at a row of the screen rather than printed behind other lines.
  std::string text;
  /// What stood on the first line before the piece: a prompt.
  std::string prompt{};
  /// False if lines above the piece were changed, or the program is still placing things on the screen: it has moved
  /// the cursor to a place of it, or cleared it, and has not gone on behind the last row since.
  bool is_complete = true;
};

/// Memory is bounded by the length of the piece and a constant.
TerminalTranscript transcribe(const TerminalPiece& piece);

}  // namespace dockbridge
