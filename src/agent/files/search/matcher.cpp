#include "agent/files/search/matcher.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace dockbridge::agent {

namespace {

constexpr std::int64_t k_regex_memory_bytes = 8L * 1024 * 1024;

/// True if \A, \z, \C or a cleared flag could make the pattern match beyond the line.
bool sees_beyond_line(std::string_view regex) {
  for (std::size_t at = 0; at + 1 < regex.size(); ++at) {
    if (regex[at] == '\\') {
      if (std::string_view("AzCQ").find(regex[at + 1]) != std::string_view::npos) {
        return true;
      }
      ++at;
    } else if (regex.substr(at, 2) == "(?") {
      const std::size_t end = regex.find_first_of(":)<", at);
      if (regex.substr(at, end - at).find('-') != std::string_view::npos) {
        return true;
      }
    }
  }
  return false;
}

/// Makes `$` also match before the carriage return that ends a line.
std::string with_carriage_returns(std::string_view regex) {
  if (regex.find("\\Q") != std::string_view::npos) {
    return std::string(regex);
  }
  std::string result;
  bool in_set = false;
  for (std::size_t at = 0; at < regex.size(); ++at) {
    const char c = regex[at];
    if (c == '\\' && at + 1 < regex.size()) {
      result += c;
      result += regex[++at];
      continue;
    }
    if (in_set && regex.substr(at, 2) == "[:") {
      const std::size_t end = regex.find(":]", at);
      if (end != std::string_view::npos) {
        result += regex.substr(at, end + 2 - at);
        at = end + 1;
        continue;
      }
    }
    if (!in_set && c == '[') {
      in_set = true;
      const std::size_t start = at + (regex.substr(at + 1, 1) == "^" ? 2 : 1);
      const std::size_t length = start - at + (regex.substr(start, 1) == "]" ? 1 : 0);
      result += regex.substr(at, length);
      at += length - 1;
      continue;
    }
    if (in_set && c == ']') {
      in_set = false;
    }
    result += !in_set && c == '$' ? "(?:\\r?$)" : std::string(1, c);
  }
  return result;
}

std::size_t line_begin(std::string_view text, std::size_t at, std::size_t least) {
  const void* found = at > least ? ::memrchr(text.data() + least, '\n', at - least) : nullptr;
  return found == nullptr ? least : static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1;
}

std::size_t line_end(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

}  // namespace

Matcher::Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

Result<Matcher> Matcher::compile(const std::string& pattern, const Options& options) {
  if (!options.multi_line && pattern.find('\n') != std::string::npos) {
    return fail(ErrorCode::bad_pattern, "Pattern contains a line break; searches match single lines",
                "Set multiLine: true, or search for one line at a time");
  }
  Matcher matcher;
  matcher.m_multi_line = options.multi_line;
  matcher.m_whole_word = options.whole_word;
  const std::string text = options.literal ? pattern : whole_literal(pattern);
  const std::string regex = options.literal ? re2::RE2::QuoteMeta(pattern) : pattern;
  const auto is_plain = [&](char c) {
    return static_cast<unsigned char>(c) < 128 && std::string_view("kKsS").find(c) == std::string_view::npos;
  };
  if (!text.empty() && !options.whole_word &&
      (!options.ignore_case || std::all_of(text.begin(), text.end(), is_plain))) {
    matcher.m_is_literal = true;
    matcher.m_literals.emplace_back(text, options.ignore_case);
    return matcher;
  }
  re2::RE2::Options settings;
  settings.set_log_errors(false);
  settings.set_max_mem(k_regex_memory_bytes);
  settings.set_case_sensitive(!options.ignore_case);
  settings.set_never_nl(!options.multi_line);
  if (const re2::RE2 as_given(pattern, settings); !options.literal && !as_given.ok()) {
    return fail(ErrorCode::bad_pattern, "Not a regular expression: " + as_given.error(),
                "Use RE2 syntax: no look-around and no back-references; escape ( [ { . * + ? with a backslash, or "
                "set literal: true");
  }
  matcher.m_line_by_line = !options.multi_line && sees_beyond_line(regex);
  std::string full = with_carriage_returns(regex);
  if (options.whole_word) {
    full = "(?:^|\\W)(" + full + ")(?:\\W|$)";
  }
  matcher.m_regex = std::make_unique<re2::RE2>("(?m)" + full, settings);
  if (!matcher.m_regex->ok()) {
    return fail(ErrorCode::bad_pattern, "The pattern is too large: " + matcher.m_regex->error(),
                "Use a shorter pattern");
  }
  for (std::string& literal : required_literals(regex, options.ignore_case)) {
    matcher.m_literals.emplace_back(std::move(literal), options.ignore_case);
  }
  return matcher;
}

bool Matcher::holds(std::string_view text, Span line) const {
  if (m_line_by_line) {
    text = text.substr(line.begin, line.end - line.begin);
    line = {0, text.size()};
  }
  return m_regex->Match({text.data(), text.size()}, line.begin, line.end, re2::RE2::UNANCHORED, nullptr, 0);
}

std::optional<Span> Matcher::find(std::string_view text, Span within) const {
  if (m_is_literal) {
    const std::size_t at = m_literals[0].find(text.substr(0, within.end), within.begin);
    return at == LiteralScan::k_none ? std::nullopt : std::optional(Span{at, at + m_literals[0].literal().size()});
  }
  std::array<re2::StringPiece, 2> found;
  const int wanted = m_whole_word ? 2 : 1;
  if (!m_regex->Match({text.data(), text.size()}, within.begin, within.end, re2::RE2::UNANCHORED, found.data(),
                      wanted)) {
    return std::nullopt;
  }
  const re2::StringPiece& match = found.at(static_cast<std::size_t>(wanted - 1));
  const auto begin = static_cast<std::size_t>(match.data() - text.data());
  return Span{begin, begin + match.size()};
}

std::optional<Span> Matcher::find_in_piece(std::string_view piece, bool begins, bool ends) const {
  // A byte outside of the searched range shows that the line continues there.
  const Span within{begins || m_is_literal ? 0U : 1U, piece.size() - (ends || m_is_literal || piece.empty() ? 0U : 1U)};
  return within.begin > within.end ? std::nullopt : find(piece, within);
}

std::optional<Span> Matcher::find_in_lines(std::string_view text, Span within) const {
  if (!m_line_by_line) {
    return find(text, within);
  }
  auto found = find(text.substr(within.begin, within.end - within.begin), {0, within.end - within.begin});
  return found ? std::optional(Span{found->begin + within.begin, found->end + within.begin}) : std::nullopt;
}

Matcher::LineCursor::LineCursor(const Matcher& matcher, std::string_view text) : m_matcher(matcher), m_text(text) {
  for (std::size_t i = 0; i < m_matcher.m_literals.size(); ++i) {
    m_literal.at(i) = m_matcher.m_literals[i].find(m_text, 0);
  }
}

std::optional<Span> Matcher::LineCursor::next() {
  if (m_matcher.m_line_by_line && m_matcher.m_literals.empty()) {
    return next_in_each_line();
  }
  while (m_at < m_text.size()) {
    std::size_t from = m_at;
    if (!m_matcher.m_literals.empty()) {
      const std::size_t candidate = next_candidate();
      if (candidate == LiteralScan::k_none) {
        break;
      }
      if (!m_matcher.m_multi_line) {
        const Span line{line_begin(m_text, candidate, m_at), line_end(m_text, candidate)};
        m_at = line.end + 1;
        if (m_matcher.m_is_literal || m_matcher.holds(m_text, line)) {
          return line;
        }
        continue;
      }
      if (m_matcher.m_is_literal) {
        from = candidate;
      }
    }
    const auto match = m_matcher.find(m_text, {from, m_text.size()});
    if (!match || (match->begin == m_text.size() && m_text.back() == '\n')) {
      break;
    }
    const Span lines = lines_of(*match);
    m_at = lines.end + 1;
    return lines;
  }
  m_at = m_text.size();
  return std::nullopt;
}

std::size_t Matcher::LineCursor::next_candidate() {
  std::size_t nearest = LiteralScan::k_none;
  for (std::size_t i = 0; i < m_matcher.m_literals.size(); ++i) {
    if (m_literal.at(i) < m_at) {
      m_literal.at(i) = m_matcher.m_literals[i].find(m_text, m_at);
    }
    nearest = std::min(nearest, m_literal.at(i));
  }
  return nearest;
}

std::optional<Span> Matcher::LineCursor::next_in_each_line() {
  while (m_at < m_text.size()) {
    const Span line{m_at, line_end(m_text, m_at)};
    m_at = line.end + 1;
    if (m_matcher.holds(m_text, line)) {
      return line;
    }
  }
  return std::nullopt;
}

/// A match that ends with a line end does not extend into the next line.
Span Matcher::LineCursor::lines_of(Span match) const {
  const bool ends_line = match.end > match.begin && m_text[match.end - 1] == '\n';
  return {line_begin(m_text, match.begin, m_at), line_end(m_text, ends_line ? match.end - 1 : match.end)};
}

}  // namespace dockbridge::agent
