#pragma once

#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Remembers the end of a command's output, to see whether it is a prompt and whether it answers the latest input.
class OutputEnd {
 public:
  void append(std::string_view bytes);
  /// Input was given. With a line break in it, the prompt before it is answered.
  void note_input(std::string_view bytes);

  /// Whether something that can be seen stands behind the last line break. Escape sequences are skipped; a move to the
  /// right counts, because a prompt may have been drawn before.
  [[nodiscard]] bool is_unfinished_line() const;
  /// Whether the unfinished line ends as prompts do, or is such a prompt with text typed behind it.
  [[nodiscard]] bool is_prompt() const;
  /// Whether something that can be seen was printed since the latest input. The echo of a line does not count.
  [[nodiscard]] bool has_answer() const;
  /// Whether the latest input had a line break in it.
  [[nodiscard]] bool was_given_line() const { return m_was_given_line; }

 private:
  std::string m_tail;
  std::size_t m_since_input = 0;  // bytes of output
  std::string m_typed;            // the beginning of the latest input, without blanks
  bool m_was_given_line = false;
  bool m_is_edited = false;  // text was typed behind a prompt
};

}  // namespace dockbridge::agent
