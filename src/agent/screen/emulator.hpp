#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "util/terminal_parser.hpp"
#include "wire/terminal.hpp"

struct VTerm;
struct VTermScreen;

namespace dockbridge::agent {

/// Knows what a person would see on a terminal, and what is typed when keys are pressed on it. A wrapper of libvterm,
/// which falls over some output that no sane program prints: it lives in a process of its own.
class Emulator {
 public:
  /// `shown` is how much output others have shown before.
  explicit Emulator(wire::TerminalSize size, std::uint64_t shown = 0);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  void show(std::string_view output);
  /// In the mode the program has put the keyboard into.
  void press(const wire::Key& key);
  /// Types the mark that begins or ends a paste, if the program has asked for such marks.
  void mark_paste(bool begins);
  /// What is typed: keys, and the terminal's own answers to questions of the program. Empties it.
  std::string take_typed();
  void resize(wire::TerminalSize size);

  /// A line of JSON (`wire::ScreenFacts`), then the screen's lines without what is blank at their ends.
  [[nodiscard]] std::string screen() const;

  /// For the library's callbacks only.
  struct Seen {
    bool cursor_visible = true;
    bool alternate = false;
    std::string typed;
  };

 private:
  wire::TerminalSize m_size;
  TerminalParser m_parser;
  std::uint64_t m_shown;          // bytes of output
  std::uint64_t m_addressed = 0;  // the same when the program placed something on the screen for the last time
  Seen m_seen;
  VTerm* m_emulator;
  VTermScreen* m_screen;
};

}  // namespace dockbridge::agent
