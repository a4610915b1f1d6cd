#include "util/terminal_parser.hpp"

#include <charconv>

namespace dockbridge {

namespace {

constexpr char k_escape = '\x1b';
constexpr char k_cancel = '\x18';
constexpr char k_substitute = '\x1a';
constexpr char k_bell = '\a';
constexpr int k_max_number = 9999;
/// Longer sequences have no known meaning.
constexpr std::size_t k_max_parameters = 64;

bool is_control(char byte) {
  return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
}

bool is_final(char byte, bool in_csi) {
  return byte >= (in_csi ? '@' : '0') && byte <= '~';
}

}  // namespace

int TerminalParser::Sequence::number(std::size_t at, int otherwise) const {
  std::string_view rest = parameters;
  for (; at > 0; --at) {
    const std::size_t end = rest.find(';');
    if (end == std::string_view::npos) {
      return otherwise;
    }
    rest.remove_prefix(end + 1);
  }
  rest.remove_prefix(rest.starts_with('?') ? 1 : 0);
  int value = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (read.ec == std::errc::result_out_of_range || value > k_max_number) {
    return k_max_number;
  }
  return read.ec == std::errc() && value > 0 ? value : otherwise;
}

bool TerminalParser::Sequence::has_mode(int mode) const {
  if (!is_csi || !is_private() || (final != 'h' && final != 'l')) {
    return false;
  }
  std::size_t at = 0;
  for (std::string_view rest = parameters; !rest.empty(); ++at) {
    if (number(at, 0) == mode) {
      return true;
    }
    const std::size_t end = rest.find(';');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return false;
}

TerminalParser::Step TerminalParser::advance(char byte) {
  if (m_state == State::string || m_state == State::string_escape) {
    const bool ends = byte == k_bell || byte == k_cancel || byte == k_substitute;
    const bool begins_another = m_state == State::string_escape && byte != '\\';
    m_state = ends || m_state == State::string_escape ? State::text
              : byte == k_escape                      ? State::string_escape
                                                      : State::string;
    if (!begins_another || ends) {
      return Step::none;
    }
    m_state = State::escape;  // another sequence ends the string
    m_is_csi = false;
    m_parameters.clear();
  }
  if (byte == k_escape) {
    m_state = State::escape;
    m_is_csi = false;
    m_parameters.clear();
    return Step::none;
  }
  if (byte == k_cancel || byte == k_substitute) {
    m_state = State::text;
    return Step::none;
  }
  if (is_control(byte)) {
    return Step::control;  // also within a sequence
  }
  if (m_state == State::escape && m_parameters.empty()) {
    if (byte == '[') {
      m_state = State::csi;
      m_is_csi = true;
      return Step::none;
    }
    if (byte == ']' || byte == 'P' || byte == 'X' || byte == '^' || byte == '_') {
      m_state = State::string;
      return Step::none;
    }
  }
  if (is_final(byte, m_state == State::csi)) {
    m_state = State::text;
    return Step::sequence;
  }
  if (m_parameters.size() < k_max_parameters) {
    m_parameters.push_back(byte);
  }
  return Step::none;
}

bool addresses_screen(const TerminalParser::Sequence& sequence) {
  if (!sequence.is_csi) {
    return sequence.parameters.empty() && (sequence.final == 'M' || sequence.final == 'c');
  }
  const bool is_plain = sequence.parameters.find_first_not_of("0123456789;") == std::string_view::npos;
  switch (sequence.final) {
    case 'H':  // cursor position
    case 'f':
    case 'd':  // cursor to a row
    case 'r':  // scrolling region
    case 'L':  // insert, delete lines
    case 'M':
    case 'S':  // scroll
    case 'T':
      return is_plain;
    case 'J':  // erase; without a number only the text after the cursor
      return is_plain && sequence.number(0, 0) >= 2;
    default:
      return false;
  }
}

}  // namespace dockbridge
