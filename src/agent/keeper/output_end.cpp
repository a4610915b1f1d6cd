#include "agent/keeper/output_end.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

/// Enough for the last line of a prompt with its colours.
constexpr std::size_t k_tail_bytes = 512;
constexpr char k_escape = '\x1b';

bool is_final_byte(char byte) {
  return byte >= '@' && byte <= '~';
}

/// Removes one escape sequence from the front. Whether it moved the cursor to the right.
bool skip_sequence(std::string_view& text) {
  text.remove_prefix(1);
  if (text.starts_with('[')) {
    const auto final = std::find_if(text.begin() + 1, text.end(), is_final_byte);
    const bool moves = final != text.end() && (*final == 'C' || (*final == 'G' && !text.starts_with("[1G")));
    text.remove_prefix(static_cast<std::size_t>(final - text.begin()) + (final == text.end() ? 0 : 1));
    return moves;
  }
  if (text.starts_with(']')) {
    const std::size_t end = text.find_first_of("\a\x1b");
    text.remove_prefix(std::min(end, text.size() - 1) + 1);
    return false;
  }
  text.remove_prefix(std::min<std::size_t>(text.size(), text.starts_with('(') || text.starts_with(')') ? 2 : 1));
  return false;
}

}  // namespace

void OutputEnd::append(std::string_view bytes) {
  m_tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), k_tail_bytes)));
  m_tail.erase(0, m_tail.size() - std::min(m_tail.size(), k_tail_bytes));
}

bool OutputEnd::is_unfinished_line() const {
  std::string_view text = m_tail;
  text.remove_prefix(text.rfind('\n') + 1);  // npos + 1 is 0
  while (!text.empty()) {
    if (text.front() == k_escape) {
      if (skip_sequence(text)) {
        return true;
      }
    } else if (static_cast<unsigned char>(text.front()) >= ' ') {
      return true;
    } else {
      text.remove_prefix(1);
    }
  }
  return false;
}

}  // namespace dockbridge::agent
