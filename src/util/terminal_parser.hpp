#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dockbridge {

/// Splits what a program prints on a terminal into text, control characters and escape sequences. A sequence may be
/// spread over several pieces of output. Knows the forms of sequences, not what they do.
class TerminalParser {
 public:
  /// CSI (`ESC [ parameters final`), or `ESC final`. Strings (titles, queries) are skipped.
  struct Sequence {
    bool is_csi = false;
    char final = 0;
    std::string_view parameters;  ///< of a CSI: digits, ';' and marks like '?'; of the other: bytes before the final

    /// The parameter at this position, from 0; `otherwise` if it is absent or 0, at most 9999.
    [[nodiscard]] int number(std::size_t at, int otherwise) const;
    /// Whether it is private to terminals of one kind: `ESC [ ?`.
    [[nodiscard]] bool is_private() const { return parameters.starts_with('?'); }
    /// A private CSI that sets or resets modes, among them this one.
    [[nodiscard]] bool has_mode(int mode) const;
  };

  /// Calls `sink.text(std::string_view)`, `sink.control(char)` and `sink.sequence(const Sequence&)`.
  template <typename Sink>
  void feed(std::string_view bytes, Sink& sink) {
    while (!bytes.empty()) {
      if (m_state == State::text) {
        std::size_t length = 0;
        while (length < bytes.size() && is_printable(bytes[length])) {
          ++length;
        }
        if (length > 0) {
          sink.text(bytes.substr(0, length));
          bytes.remove_prefix(length);
          continue;
        }
      }
      switch (advance(bytes.front())) {
        case Step::none:
          break;
        case Step::control:
          sink.control(bytes.front());
          break;
        case Step::sequence:
          sink.sequence(Sequence{m_is_csi, bytes.front(), m_parameters});
          break;
      }
      bytes.remove_prefix(1);
    }
  }

 private:
  enum class State { text, escape, csi, string, string_escape };
  enum class Step { none, control, sequence };

  static bool is_printable(char byte) { return static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7F; }
  Step advance(char byte);

  State m_state = State::text;
  bool m_is_csi = false;
  std::string m_parameters;
};

/// Whether a sequence moves the cursor to a place of the screen, clears or scrolls the screen. Moves within a line or
/// relative to the cursor, colours, and erasing behind the cursor do not count: prompts and progress bars use them.
bool addresses_screen(const TerminalParser::Sequence& sequence);

}  // namespace dockbridge
