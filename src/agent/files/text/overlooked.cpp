#include "agent/files/text/overlooked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "agent/files/text/find_text.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_counted_places = 100;

/// One character, or one byte of a character that is not folded.
struct Token {
  enum class Kind { blank, invisible, visible };
  Kind kind;
  std::size_t length;
  char folded = 0;  // the same for characters that look alike
};

/// Special values in the table of folded bytes.
constexpr char k_blank = 0;
constexpr char k_look_closer = 1;

constexpr std::array<char, 256> make_folds() {
  std::array<char, 256> folds{};
  for (std::size_t i = 0; i < folds.size(); ++i) {
    const char c = static_cast<char>(i);
    const bool is_blank = c == ' ' || (c >= '\t' && c <= '\r');
    const bool starts_special = c == '\xC2' || c == '\xE2' || c == '\xE3' || c == '\xEF';
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_quote = c == '\'' || c == '`';
    folds[i] = is_blank                               ? k_blank
               : starts_special || i <= k_look_closer ? k_look_closer
               : is_upper                             ? static_cast<char>(c - 'A' + 'a')
               : is_quote                             ? '"'
                                                      : c;
  }
  return folds;
}

constexpr std::array<char, 256> k_folds = make_folds();

/// Classifies general punctuation; `rest` starts with E2.
Token punctuation(std::string_view rest) {
  const auto second = static_cast<unsigned char>(rest[1]);
  const auto third = static_cast<unsigned char>(rest[2]);
  const unsigned point = second == 0x80 || second == 0x81 ? 0x2000U + (second - 0x80U) * 64 + (third - 0x80U) : 0;
  if ((point >= 0x2000 && point <= 0x200A) || point == 0x202F || point == 0x205F || point == 0x2028) {
    return {Token::Kind::blank, 3};
  }
  if ((point >= 0x200B && point <= 0x200F) || (point >= 0x202A && point <= 0x202E) ||
      (point >= 0x2060 && point <= 0x2064)) {
    return {Token::Kind::invisible, 3};
  }
  if ((point >= 0x2018 && point <= 0x201F) || point == 0x2032 || point == 0x2033) {
    return {Token::Kind::visible, 3, '"'};
  }
  if (point >= 0x2010 && point <= 0x2015) {
    return {Token::Kind::visible, 3, '-'};
  }
  return {Token::Kind::visible, 1, rest.front()};
}

Token token_at(std::string_view text, std::size_t at) {
  const char c = text[at];
  const char folded = k_folds[static_cast<unsigned char>(c)];
  if (folded == k_blank) {
    return {Token::Kind::blank, 1};
  }
  if (folded != k_look_closer) {
    return {Token::Kind::visible, 1, folded};
  }
  const std::string_view rest = text.substr(at, 3);
  if (c == '\xE2' && rest.size() == 3) {
    return punctuation(rest);
  }
  if (rest.starts_with("\xC2\xA0")) {  // no-break space
    return {Token::Kind::blank, 2};
  }
  if (rest == "\xE3\x80\x80") {  // ideographic space
    return {Token::Kind::blank, 3};
  }
  if (rest.starts_with("\xC2\xAD")) {  // soft hyphen
    return {Token::Kind::invisible, 2};
  }
  if (rest == "\xEF\xBB\xBF") {  // byte order mark
    return {Token::Kind::invisible, 3};
  }
  if (rest.starts_with("\xC2\xAB") || rest.starts_with("\xC2\xBB") || rest.starts_with("\xC2\xB4")) {  // « » ´
    return {Token::Kind::visible, 2, '"'};
  }
  return {Token::Kind::visible, 1, c};
}

/// Iterates over the visible tokens, each with the run of blank and invisible tokens before it.
class Walk {
 public:
  explicit Walk(std::string_view text) : m_text(text) { next(); }

  void next() {
    m_run_begin = m_at + m_length;
    m_at = m_run_begin;
    m_length = 0;
    while (m_at < m_text.size()) {
      const Token token = token_at(m_text, m_at);
      if (token.kind == Token::Kind::visible) {
        m_length = token.length;
        return;
      }
      m_at += token.length;
    }
  }
  [[nodiscard]] bool at_end() const { return m_length == 0; }
  [[nodiscard]] std::size_t at() const { return m_at; }
  [[nodiscard]] std::string_view run() const { return m_text.substr(m_run_begin, m_at - m_run_begin); }
  [[nodiscard]] std::string_view token() const { return m_text.substr(m_at, m_length); }

 private:
  std::string_view m_text;
  std::size_t m_run_begin = 0;
  std::size_t m_at = 0;
  std::size_t m_length = 0;
};

/// Collects the kinds of differences between two texts that are equal when folded.
class Differences {
 public:
  void note(const char* kind, std::size_t at, std::string_view in_file, std::string_view in_wanted);
  /// Compares the characters between two words; `at` is the position in the file.
  void compare_runs(std::string_view in_file, std::string_view in_wanted, std::size_t at, bool starts_line);
  /// Compares the characters after the last word.
  void compare_end(std::string_view in_file, std::string_view in_wanted, std::size_t at);
  void compare_tokens(std::string_view in_file, std::string_view in_wanted, std::size_t at);
  [[nodiscard]] std::size_t first_at() const { return m_first_at; }
  [[nodiscard]] std::string kinds() const { return fmt::format("{}", fmt::join(m_kinds, ", ")); }
  [[nodiscard]] const std::string& first() const { return m_first; }

 private:
  void compare_blanks(std::string_view in_file, std::string_view in_wanted, std::size_t at, const char* kind);

  std::vector<const char*> m_kinds;
  std::size_t m_first_at = 0;
  std::string m_first;
};

/// Describes characters: "2 tabs, 1 space", "LF", "U+00A0", "\"x\"".
std::string in_words(std::string_view text) {
  constexpr std::size_t k_max_words = 6;
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size() && words.size() < k_max_words;) {
    const char c = text[at];
    const std::size_t count = std::min(text.find_first_not_of(c, at), text.size()) - at;
    if (c == ' ' || c == '\t') {
      words.push_back(fmt::format("{} {}{}", count, c == ' ' ? "space" : "tab", count == 1 ? "" : "s"));
      at += count;
    } else if (text.substr(at).starts_with("\r\n")) {
      words.emplace_back("CR LF");
      at += 2;
    } else if (c == '\n' || c == '\r') {
      words.emplace_back(c == '\n' ? "LF" : "CR");
      ++at;
    } else if (const Token token = token_at(text, at); token.kind != Token::Kind::visible && token.length > 1) {
      const auto lead = static_cast<unsigned char>(c);
      unsigned point = token.length == 2 ? lead & 0x1FU : lead & 0x0FU;
      for (const char next : text.substr(at + 1, token.length - 1)) {
        point = (point << 6U) | (static_cast<unsigned char>(next) & 0x3FU);
      }
      words.push_back(fmt::format("U+{:04X}", point));
      at += token.length;
    } else {
      words.push_back(printable_line(text.substr(at, token.length), token.length));
      at += token.length;
    }
  }
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

void Differences::note(const char* kind, std::size_t at, std::string_view in_file, std::string_view in_wanted) {
  if (m_kinds.empty()) {
    m_first_at = at;
    m_first = fmt::format("{} in the file, {} in oldString", in_words(in_file), in_words(in_wanted));
  }
  if (std::find(m_kinds.begin(), m_kinds.end(), kind) == m_kinds.end()) {
    m_kinds.push_back(kind);
  }
}

auto line_breaks(std::string_view run) {
  return std::count(run.begin(), run.end(), '\n');
}

/// Reduces a run to plain blanks, with LF for line ends.
std::string plain_run(std::string_view run) {
  std::string plain;
  for (std::size_t at = 0; at < run.size();) {
    const Token token = token_at(run, at);
    const bool is_carriage_return = run.substr(at).starts_with("\r\n");
    if (token.kind == Token::Kind::blank && !is_carriage_return) {
      plain.push_back(token.length == 1 ? run[at] : ' ');
    }
    at += token.length;
  }
  return plain;
}

/// The characters of a run that are not ASCII.
std::string special_of(std::string_view run) {
  std::string special;
  std::copy_if(run.begin(), run.end(), std::back_inserter(special),
               [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return special;
}

void Differences::compare_blanks(std::string_view in_file, std::string_view in_wanted, std::size_t at,
                                 const char* kind) {
  constexpr char k_tab = '\t';
  if (in_file == in_wanted) {
    return;
  }
  const bool tabs_differ =
      (in_file.find(k_tab) == std::string_view::npos) != (in_wanted.find(k_tab) == std::string_view::npos);
  note(tabs_differ && !in_file.empty() && !in_wanted.empty() ? "tabs against spaces" : kind, at, in_file, in_wanted);
}

void Differences::compare_runs(std::string_view in_file, std::string_view in_wanted, std::size_t at, bool starts_line) {
  if (in_file == in_wanted) {
    return;
  }
  if (special_of(in_file) != special_of(in_wanted)) {
    note("invisible or special blank characters", at, in_file, in_wanted);
  }
  const std::string file = plain_run(in_file);
  const std::string wanted = plain_run(in_wanted);
  if (file == wanted) {
    if (std::count(in_file.begin(), in_file.end(), '\r') != std::count(in_wanted.begin(), in_wanted.end(), '\r')) {
      note("line ends", at, in_file, in_wanted);
    }
    return;
  }
  const auto breaks = line_breaks(file);
  if (breaks != line_breaks(wanted)) {
    note("line breaks or empty lines", at, in_file, in_wanted);
    return;
  }
  if (breaks == 0) {
    compare_blanks(file, wanted, at, starts_line ? "indentation" : "spaces between words");
    return;
  }
  const std::size_t file_indent = file.rfind('\n') + 1;
  const std::size_t wanted_indent = wanted.rfind('\n') + 1;
  if (file.substr(0, file_indent) != wanted.substr(0, wanted_indent)) {
    note("blanks at the end of lines", at, in_file, in_wanted);
  }
  compare_blanks(std::string_view(file).substr(file_indent), std::string_view(wanted).substr(wanted_indent),
                 at + in_file.size(), "indentation");
}

void Differences::compare_end(std::string_view in_file, std::string_view in_wanted, std::size_t at) {
  if (in_file == in_wanted) {
    return;
  }
  if (special_of(in_file) == special_of(in_wanted) && line_breaks(in_file) == 0 && line_breaks(in_wanted) == 0) {
    note("blanks at the end of lines", at, in_file, in_wanted);
  } else {
    compare_runs(in_file, in_wanted, at, false);
  }
}

void Differences::compare_tokens(std::string_view in_file, std::string_view in_wanted, std::size_t at) {
  if (in_file == in_wanted) {
    return;
  }
  const char folded = token_at(in_file, 0).folded;
  const bool is_letter = folded >= 'a' && folded <= 'z';
  note(is_letter ? "upper and lower case" : folded == '"' ? "quotes" : "dashes", at, in_file, in_wanted);
}

/// End of the run before a first word, as long as `like`.
std::string_view end_of_run(std::string_view run, std::string_view like) {
  if (run.ends_with(like)) {
    return like;
  }
  std::size_t from = run.rfind('\n');
  for (auto breaks = line_breaks(like); breaks > 0 && from != std::string_view::npos; --breaks) {
    from = from == 0 ? std::string_view::npos : run.rfind('\n', from - 1);
  }
  run.remove_prefix(from == std::string_view::npos ? 0 : from + 1);
  const std::size_t first_break = run.find('\n');
  const std::size_t like_break = like.find('\n');
  if (first_break != std::string_view::npos && like_break < first_break) {
    run.remove_prefix(first_break - like_break);
  }
  return run;
}

/// Start of the run after a last word, as long as `like`.
std::string_view start_of_run(std::string_view run, std::string_view like) {
  if (run.starts_with(like)) {
    return like;
  }
  std::size_t to = run.find('\n');
  for (auto breaks = line_breaks(like); breaks > 0 && to != std::string_view::npos; --breaks) {
    to = run.find('\n', to + 1);
  }
  run = run.substr(0, to);
  if (to != std::string_view::npos && run.ends_with('\r')) {
    run.remove_suffix(1);
  }
  const std::size_t last = run.rfind('\n');
  const std::size_t like_last = like.rfind('\n');
  if (last != std::string_view::npos && like_last != std::string_view::npos) {
    run = run.substr(0, last + like.size() - like_last);
  }
  return run;
}

/// True if blanks at the end of the wanted text are missing in the file because a word continues there, or line breaks
/// because the line continues. Then the two differ in more than blanks.
bool is_continued(std::string_view in_file, std::string_view in_wanted, bool is_edge_of_file) {
  return !is_edge_of_file &&
         ((in_file.empty() && !in_wanted.empty()) || (line_breaks(in_file) == 0 && line_breaks(in_wanted) > 0));
}

/// Finds the places in a text that are equal to the wanted text when both are folded, and that have the same ends.
/// Takes linear time. The texts must outlive this object.
class FoldedPlaces {
 public:
  FoldedPlaces(std::string_view text, std::string folded, std::string_view wanted, const std::string& folded_wanted)
      : m_folded(std::move(folded)), m_wanted(folded_wanted), m_begin(text), m_end(text), m_size(text.size()) {
    Walk walk(wanted);
    m_run_before = walk.run();
    while (!walk.at_end()) {
      walk.next();
    }
    m_run_after = walk.run();
  }

  /// Moves to the next place. Places that were returned do not overlap.
  bool next() {
    for (; (m_from = find_text(m_folded, m_wanted, m_from)) != std::string_view::npos;) {
      for (; m_begun < m_from; ++m_begun) {
        m_begin.next();
      }
      for (; m_ended < m_from + m_wanted.size(); ++m_ended) {
        m_end.next();
      }
      const bool fits = !is_continued(m_begin.run(), m_run_before, m_begin.run().size() == m_begin.at()) &&
                        !is_continued(m_end.run(), m_run_after, m_end.at() == m_size);
      // Starting a search costs the length of the wanted text, so overlapping places are tried only a few times.
      m_from += fits || ++m_misfits > k_max_counted_places ? m_wanted.size() : 1;
      if (fits) {
        return true;
      }
    }
    m_from = m_folded.size();
    return false;
  }
  /// At the first visible character of the place.
  [[nodiscard]] const Walk& begin() const { return m_begin; }

 private:
  std::string m_folded;
  std::string_view m_wanted;  // folded
  Walk m_begin;
  Walk m_end;  // after the place
  std::size_t m_size;
  std::string_view m_run_before;
  std::string_view m_run_after;
  std::size_t m_from = 0;
  std::size_t m_begun = 0;
  std::size_t m_ended = 0;
  std::size_t m_misfits = 0;
};

}  // namespace

void fold_into(std::string& out, std::string_view text) {
  const std::size_t before = out.size();
  out.resize(before + text.size());
  char* to = out.data() + before;
  for (std::size_t at = 0; at < text.size();) {
    const char folded = k_folds[static_cast<unsigned char>(text[at])];
    if (folded != k_look_closer) {
      *to = folded;
      to += folded == k_blank ? 0 : 1;
      ++at;
      continue;
    }
    const Token token = token_at(text, at);
    if (token.kind == Token::Kind::visible) {
      *to++ = token.folded;
    }
    at += token.length;
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
}

std::string fold(std::string_view text) {
  std::string out;
  fold_into(out, text);
  return out;
}

std::optional<Overlooked> find_overlooked(std::string_view text, std::string_view wanted) {
  const std::string folded_wanted = fold(wanted);
  if (folded_wanted.empty()) {
    return std::nullopt;
  }
  FoldedPlaces places(text, fold(text), wanted, folded_wanted);
  if (!places.next()) {
    return std::nullopt;
  }
  Walk in_file = places.begin();
  Walk in_wanted(wanted);
  Overlooked found{in_file.at(), in_file.at(), 1, {}, 0, {}};
  Differences differences;
  const std::string_view before = end_of_run(in_file.run(), in_wanted.run());
  const bool starts_line = line_breaks(in_file.run()) > 0 || in_file.run().size() == found.begin;
  differences.compare_runs(before, in_wanted.run(), found.begin - before.size(), starts_line);
  while (true) {
    differences.compare_tokens(in_file.token(), in_wanted.token(), in_file.at());
    found.end = in_file.at() + in_file.token().size();
    in_file.next();
    in_wanted.next();
    if (in_wanted.at_end()) {
      break;
    }
    differences.compare_runs(in_file.run(), in_wanted.run(), found.end, false);
  }
  differences.compare_end(start_of_run(in_file.run(), in_wanted.run()), in_wanted.run(), found.end);
  while (found.places < k_max_counted_places && places.next()) {
    ++found.places;
  }
  found.kinds = differences.kinds();
  found.first_at = differences.first_at();
  found.first = differences.first();
  return found;
}

}  // namespace dockbridge::agent
