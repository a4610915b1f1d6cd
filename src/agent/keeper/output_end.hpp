#pragma once

#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Keeps the end of a command's output, to determine whether it is a prompt and whether it answers the latest input.
class OutputEnd {
 public:
  void append(std::string_view bytes);
  /// Records input. If it has a line break, the prompt before it is answered.
  void note_input(std::string_view bytes);

  /// Whether there is visible text behind the last line break. Escape sequences are skipped, but a move to the right
  /// counts, because a prompt may have been drawn there before.
  [[nodiscard]] bool is_unfinished_line() const;
  /// Whether the unfinished line ends as prompts do, or is such a prompt with text typed behind it.
  [[nodiscard]] bool is_prompt() const;
  /// Whether visible text was printed since the latest input. The echo of a line does not count.
  [[nodiscard]] bool has_answer() const;
  /// Whether the latest input had a line break in it.
  [[nodiscard]] bool had_input_line() const { return m_had_input_line; }

 private:
  std::string m_tail;
  std::size_t m_since_input = 0;  // bytes of output
  std::string m_typed;            // beginning of the latest input, without blanks
  bool m_had_input_line = false;
  bool m_is_edited = false;  // text was typed behind a prompt
};

}  // namespace dockbridge::agent
