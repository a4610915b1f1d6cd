#include "agent/files/search/required_literal.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace dockbridge::agent {

namespace {

/// Parses the alternatives of a regular expression as texts with unknown parts between them. Knows few constructs, and
/// rejects an expression with any other.
class Alternatives {
 public:
  Alternatives(std::string_view regex, bool ignore_case) : m_regex(regex), m_ignore_case(ignore_case) {}

  /// The longest text of each alternative; empty if one has none.
  std::vector<std::string> longest() {
    std::vector<std::string> found;
    while (m_at < m_regex.size()) {
      if (!step()) {
        return {};
      }
      if (m_ended) {
        found.push_back(end_alternative());
      }
    }
    found.push_back(end_alternative());
    const bool some_have_none = std::any_of(found.begin(), found.end(), [](const auto& one) { return one.empty(); });
    return some_have_none || found.size() > k_max_required_literals ? std::vector<std::string>{} : found;
  }

 private:
  /// Parses the next item and its repetition. Returns false if the syntax is unknown.
  bool step() {
    const char c = m_regex[m_at];
    std::string text;  // of the item, if it is a literal character
    m_ended = false;
    switch (c) {
      case '|':
        ++m_at;
        m_ended = true;
        return true;
      case '(':
        if (!skip_group()) {
          return false;
        }
        break;
      case '[':
        if (!skip_set()) {
          return false;
        }
        break;
      case '.':
      case '^':
      case '$':
        ++m_at;
        break;
      case '\\': {
        const auto escaped = take_escape();
        if (!escaped) {
          return false;
        }
        text = *escaped;
        break;
      }
      case '*':
      case '+':
      case '?':
      case ')':
        return false;
      default:
        text = take_character();
    }
    const auto repeated = take_repetition();
    if (!repeated) {
      return false;
    }
    add(text, *repeated);
    return true;
  }

  enum class Repeated { once, at_least_once, maybe };

  void add(const std::string& text, Repeated repeated) {
    if (text.empty() || repeated == Repeated::maybe || !stands_for_itself(text)) {
      end_run();
      return;
    }
    m_run += text;
    if (repeated == Repeated::at_least_once) {
      end_run();
    }
  }

  /// Without regard to case, k and s also match non-ASCII characters, and most non-ASCII characters have other cases.
  [[nodiscard]] bool stands_for_itself(const std::string& text) const {
    return !m_ignore_case || (text.size() == 1 && static_cast<unsigned char>(text[0]) < 128 &&
                              std::string_view("kKsS").find(text[0]) == std::string_view::npos);
  }

  void end_run() {
    if (m_run.size() > m_longest.size()) {
      m_longest = m_run;
    }
    m_run.clear();
  }

  std::string end_alternative() {
    end_run();
    return std::exchange(m_longest, {});
  }

  std::string take_character() {
    std::size_t end = m_at + 1;
    while (end < m_regex.size() && (static_cast<unsigned char>(m_regex[end]) & 0xC0U) == 0x80) {
      ++end;
    }
    std::string text(m_regex.substr(m_at, end - m_at));
    m_at = end;
    return text;
  }

  /// Returns the escaped character; empty for a class or an assertion.
  std::optional<std::string> take_escape() {
    if (m_at + 1 >= m_regex.size()) {
      return std::nullopt;
    }
    const char c = m_regex[m_at + 1];
    m_at += 2;
    if (std::string_view("dDwWsSbB").find(c) != std::string_view::npos) {
      return "";
    }
    if (c == 't') {
      return "\t";
    }
    const bool is_punctuation =
        std::string_view("\\.+*?()|[]{}^$/-_\"'<>=!@#%&,:;~` ").find(c) != std::string_view::npos;
    return is_punctuation ? std::optional(std::string(1, c)) : std::nullopt;
  }

  std::optional<Repeated> take_repetition() {
    if (m_at == m_regex.size()) {
      return Repeated::once;
    }
    Repeated repeated = Repeated::once;
    const char c = m_regex[m_at];
    if (c == '*' || c == '?') {
      repeated = Repeated::maybe;
      ++m_at;
    } else if (c == '+') {
      repeated = Repeated::at_least_once;
      ++m_at;
    } else if (c == '{') {
      const std::size_t digits = std::min(m_regex.find_first_not_of("0123456789", m_at + 1), m_regex.size());
      const std::size_t end = m_regex.find('}', m_at);
      if (digits == m_at + 1 || end == std::string_view::npos ||
          m_regex.find_first_not_of("0123456789,", m_at + 1) != end) {
        return Repeated::once;  // a literal brace
      }
      const std::string_view least = m_regex.substr(m_at + 1, digits - m_at - 1);
      repeated = least.find_first_not_of('0') == std::string_view::npos ? Repeated::maybe : Repeated::at_least_once;
      m_at = end + 1;
    } else {
      return Repeated::once;
    }
    if (m_at < m_regex.size() && m_regex[m_at] == '?') {
      ++m_at;
    }
    const bool once_more =
        m_at < m_regex.size() && std::string_view("*+?{").find(m_regex[m_at]) != std::string_view::npos;
    return once_more ? std::nullopt : std::optional(repeated);
  }

  bool skip_set() {
    ++m_at;
    if (m_at < m_regex.size() && m_regex[m_at] == '^') {
      ++m_at;
    }
    for (bool first = true; m_at < m_regex.size(); first = false) {
      const char c = m_regex[m_at];
      if (c == ']' && !first) {
        ++m_at;
        return true;
      }
      if (c == '[' && m_regex.substr(m_at, 2) == "[:") {
        const std::size_t end = m_regex.find(":]", m_at);
        if (end == std::string_view::npos) {
          return false;
        }
        m_at = end + 2;
      } else if (c == '\\') {
        if (m_at + 1 < m_regex.size() && std::string_view("QE").find(m_regex[m_at + 1]) != std::string_view::npos) {
          return false;
        }
        m_at += 2;
      } else {
        ++m_at;
      }
    }
    return false;
  }

  bool skip_group() {
    int depth = 0;
    do {
      if (m_at >= m_regex.size()) {
        return false;
      }
      const char c = m_regex[m_at];
      if (c == '[') {
        if (!skip_set()) {
          return false;
        }
        continue;
      }
      if (c == '\\') {
        if (m_at + 1 < m_regex.size() && m_regex[m_at + 1] == 'Q') {
          return false;
        }
        ++m_at;
      } else if (c == '(') {
        const std::string_view rest = m_regex.substr(m_at + 1);
        if (rest.starts_with('?') && !rest.starts_with("?:") && !rest.starts_with("?P<")) {
          return false;  // flags
        }
        ++depth;
      } else if (c == ')') {
        --depth;
      }
      ++m_at;
    } while (depth > 0);
    return true;
  }

  std::string_view m_regex;
  bool m_ignore_case;
  std::size_t m_at = 0;
  bool m_ended = false;  // end of the alternative
  std::string m_run;
  std::string m_longest;
};

}  // namespace

std::vector<std::string> required_literals(std::string_view regex, bool ignore_case) {
  return Alternatives(regex, ignore_case).longest();
}

std::string whole_literal(std::string_view regex) {
  std::string text;
  for (std::size_t at = 0; at < regex.size(); ++at) {
    char c = regex[at];
    if (c == '\\') {
      if (++at == regex.size() || std::string_view(R"(\.+*?()|[]{}^$/-)").find(regex[at]) == std::string_view::npos) {
        return {};
      }
      c = regex[at];
    } else if (std::string_view(".+*?()|[{^$").find(c) != std::string_view::npos) {
      return {};
    }
    text += c;
  }
  return text;
}

}  // namespace dockbridge::agent
