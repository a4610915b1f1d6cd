#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wire/terminal.hpp"

struct VTerm;
struct VTermScreen;

namespace dockbridge::agent {

/// Knows what a person would see on a terminal, and what is typed when keys are pressed on it. A wrapper of libvterm,
/// which falls over some output that no sane program prints: it lives in a process of its own.
class Emulator {
 public:
  explicit Emulator(wire::TerminalSize size);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  void show(std::string_view output);
  /// In the mode the program has put the keyboard into.
  void press(const wire::Key& key);
  /// What is typed: keys, and the terminal's own answers to questions of the program. Empties it.
  std::string take_typed();
  void resize(wire::TerminalSize size);

  /// A line of JSON (columns, rows, cursor as [row, column] from 0, cursorVisible, alternate), then the screen's lines
  /// without what is blank at their ends.
  [[nodiscard]] std::string screen() const;

  /// For the library's callbacks only.
  struct Seen {
    bool cursor_visible = true;
    bool alternate = false;
    std::string typed;
  };

 private:
  wire::TerminalSize m_size;
  Seen m_seen;
  VTerm* m_emulator;
  VTermScreen* m_screen;
};

}  // namespace dockbridge::agent
