#include "agent/keeper/output_end.hpp"

#include <algorithm>
#include <array>

namespace dockbridge::agent {

namespace {

/// Holds the last line of a prompt with its colours.
constexpr std::size_t k_tail_bytes = 512;
constexpr char k_escape = '\x1b';
constexpr char k_delete = '\x7f';

bool is_final_byte(char byte) {
  return byte >= '@' && byte <= '~';
}

/// Whether it is neither a blank nor a control character.
bool is_ink(char byte) {
  return static_cast<unsigned char>(byte) > ' ' && byte != k_delete;
}

/// Removes one escape sequence from the front. Returns whether it moves the cursor to the right.
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

/// The visible part of a text.
struct Visible {
  std::string ink;  ///< without blanks
  bool has_text = false;
  bool moves_right = false;
};

Visible visible_part(std::string_view text) {
  Visible visible;
  while (!text.empty()) {
    if (text.front() == k_escape) {
      visible.moves_right = skip_sequence(text) || visible.moves_right;
      continue;
    }
    visible.has_text = visible.has_text || text.front() == ' ' || is_ink(text.front());
    if (is_ink(text.front())) {
      visible.ink += text.front();
    }
    text.remove_prefix(1);
  }
  return visible;
}

std::string_view last_line(std::string_view text) {
  return text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
}

/// Programs that report progress end their lines with words, dots, or a percent sign instead.
bool ends_as_prompt(std::string_view ink) {
  constexpr std::string_view k_ascii = "?:>$#])";
  constexpr std::array<std::string_view, 8> k_others = {"›", "»", "❯", "➜", "→", "▶", "⟩", "λ"};
  return (!ink.empty() && k_ascii.find(ink.back()) != std::string_view::npos) ||
         std::any_of(k_others.begin(), k_others.end(), [&](std::string_view sign) { return ink.ends_with(sign); });
}

}  // namespace

void OutputEnd::append(std::string_view bytes) {
  m_tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), k_tail_bytes)));
  m_tail.erase(0, m_tail.size() - std::min(m_tail.size(), k_tail_bytes));
  m_since_input += bytes.size();
  m_is_edited = m_is_edited && bytes.find('\n') == std::string_view::npos;
}

void OutputEnd::note_input(std::string_view bytes) {
  m_had_input_line = bytes.find_first_of("\r\n") != std::string_view::npos;
  m_is_edited = !m_had_input_line && (m_is_edited || is_prompt());
  m_tail.resize(m_had_input_line ? 0 : m_tail.size());
  m_since_input = 0;
  m_typed = visible_part(bytes.substr(0, k_tail_bytes)).ink;
}

bool OutputEnd::is_unfinished_line() const {
  const Visible line = visible_part(last_line(m_tail));
  return line.has_text || line.moves_right;
}

bool OutputEnd::is_prompt() const {
  const Visible line = visible_part(last_line(m_tail));
  return line.moves_right || ends_as_prompt(line.ink) || (m_is_edited && m_since_input > 0);
}

bool OutputEnd::has_answer() const {
  if (m_since_input > m_tail.size()) {
    return true;
  }
  const Visible printed = visible_part(std::string_view(m_tail).substr(m_tail.size() - m_since_input));
  return m_had_input_line ? !m_typed.starts_with(printed.ink) : !printed.ink.empty();
}

}  // namespace dockbridge::agent
