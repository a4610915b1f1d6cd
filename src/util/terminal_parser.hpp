#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dockbridge {

/// Splits the output of a program on a terminal into text, control characters and escape sequences. A sequence may be
/// split between pieces of output. Parses sequences, but does not interpret them.
class TerminalParser {
 public:
  /// CSI (`ESC [ parameters final`), or `ESC final`. Strings such as titles and queries are skipped.
  struct Sequence {
    bool is_csi = false;
    char final = 0;
    std::string_view parameters;  ///< CSI: digits, ';' and marks like '?'. Other: bytes before the final byte

    /// The parameter with this index, at most 9999; `otherwise` if it is absent or 0.
    [[nodiscard]] int number(std::size_t at, int otherwise) const;
    /// Whether it is a private sequence: `ESC [ ?`.
    [[nodiscard]] bool is_private() const { return parameters.starts_with('?'); }
    /// Whether it is a private CSI that sets or resets this mode.
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

/// Whether a sequence moves the cursor to an absolute position, clears the screen or scrolls it. Relative moves, moves
/// within a line, colours, and erasing after the cursor do not count: prompts and progress bars use them.
bool addresses_screen(const TerminalParser::Sequence& sequence);

}  // namespace dockbridge
