#pragma once

#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Remembers the end of a command's output, to see whether that is an unfinished line, as a prompt is.
class OutputEnd {
 public:
  void append(std::string_view bytes);
  /// Whether something that can be seen stands behind the last line break. Escape sequences are skipped; a move to the
  /// right counts, because a prompt may have been drawn before.
  [[nodiscard]] bool is_unfinished_line() const;

 private:
  std::string m_tail;
};

}  // namespace dockbridge::agent
