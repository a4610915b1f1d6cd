#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "util/terminal_parser.hpp"
#include "wire/terminal.hpp"

struct VTerm;
struct VTermScreen;

namespace dockbridge::agent {

/// Emulates a terminal: its screen, and the encoding of keys. A wrapper of libvterm, which some unusual output crashes,
/// so it runs in a process of its own.
class Emulator {
 public:
  /// `shown` is the number of bytes that earlier emulators of the terminal have shown.
  explicit Emulator(wire::TerminalSize size, std::uint64_t shown = 0);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  void show(std::string_view output);
  /// Encodes a key in the keyboard mode that the program has set.
  void press(const wire::Key& key);
  /// Types the mark at the begin or end of a paste, if the program has enabled bracketed paste.
  void mark_paste(bool begins);
  /// Returns and clears the input for the program: encoded keys, and replies of the terminal to queries.
  std::string take_typed();
  void resize(wire::TerminalSize size);

  /// A line of JSON (`wire::ScreenFacts`), then the lines of the screen without trailing blanks.
  [[nodiscard]] std::string screen() const;

  /// State that the callbacks of the library change.
  struct CallbackState {
    bool cursor_visible = true;
    bool alternate = false;
    std::string typed;
  };

 private:
  wire::TerminalSize m_size;
  TerminalParser m_parser;
  std::uint64_t m_shown;          // bytes of output
  std::uint64_t m_addressed = 0;  // value of m_shown when the program last placed something on the screen
  CallbackState m_state;
  VTerm* m_emulator;
  VTermScreen* m_screen;
};

}  // namespace dockbridge::agent
