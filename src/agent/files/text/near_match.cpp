#include "agent/files/text/near_match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/files/text/line_comparison.hpp"
#include "agent/files/text/overlooked.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_shown_line_bytes = 200;
constexpr std::size_t k_max_shown_lines = 8;
constexpr std::size_t k_lines_of_context = 4;
constexpr std::size_t k_max_known_lines = 200;  // of the wanted text; every line of the file is compared with them
constexpr std::size_t k_max_alignments = 4096;
constexpr std::size_t k_min_line_bytes = 4;  // "}" and "end" are everywhere
constexpr std::size_t k_min_share = 4;       // one in four bytes must match for a place to count as the intended one
constexpr std::size_t k_min_similarity_percent = 60;
constexpr std::size_t k_max_similar_lines = 3;

std::size_t line_number(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// Start of the line that contains `at`.
std::size_t line_start(std::string_view text, std::size_t at) {
  const std::size_t line_break = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return line_break == std::string_view::npos ? 0 : line_break + 1;
}

/// The line that starts at `at`, without its end.
std::string_view line_at(std::string_view text, std::size_t at) {
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

/// Formats numbered lines of the text from `at` on, which is in line `number`.
std::string shown_lines(std::string_view text, std::size_t at, std::size_t number, std::size_t count) {
  at = line_start(text, at);
  std::string shown;
  for (std::size_t i = 0; i < std::min(count, k_max_shown_lines) && at < text.size(); ++i) {
    shown += fmt::format("\n{:6}: {}", number + i, printable_line(line_at(text, at), k_shown_line_bytes));
    at = next_line(text, at);
  }
  return count > k_max_shown_lines ? shown + fmt::format("\n        (and {} more lines)", count - k_max_shown_lines)
                                   : shown;
}

/// Describes a place that differs only in characters that are easily overlooked.
std::string describe(const Overlooked& found, std::string_view text) {
  const std::size_t first = line_number(text, found.begin);
  const std::size_t last = line_number(text, found.end);
  return fmt::format(
      "{} from it only in {} (line {}: {}){}:{}",
      first == last ? fmt::format("line {} differs", first) : fmt::format("lines {} to {} differ", first, last),
      found.kinds, line_number(text, found.first_at), found.first,
      found.places == 1 ? "" : fmt::format(", and so do {} other places", found.places - 1),
      shown_lines(text, found.begin, first, last - first + 1));
}

/// Set of the pairs of adjacent bytes in a line, by hash.
class Pairs {
 public:
  explicit Pairs(std::string_view folded) {
    for (std::size_t i = 0; i + 1 < std::min(folded.size(), k_max_bytes); ++i) {
      const unsigned pair =
          static_cast<unsigned char>(folded[i]) * 31U + static_cast<unsigned char>(folded[i + 1]) * 257U;
      m_bits[(pair / 64) % m_bits.size()] |= std::uint64_t{1} << (pair % 64);
    }
    for (const std::uint64_t bits : m_bits) {
      m_count += static_cast<std::size_t>(std::popcount(bits));
    }
  }
  [[nodiscard]] std::size_t similarity_percent(const Pairs& other) const {
    std::size_t common = 0;
    for (std::size_t i = 0; i < m_bits.size(); ++i) {
      common += static_cast<std::size_t>(std::popcount(m_bits[i] & other.m_bits[i]));
    }
    const std::size_t all = m_count + other.m_count;
    return all == 0 ? 0 : 200 * common / all;
  }

 private:
  static constexpr std::size_t k_max_bytes = 256;
  std::array<std::uint64_t, 16> m_bits{};
  std::size_t m_count = 0;
};

struct Line {
  std::size_t at = 0;
  std::size_t number = 0;
};

/// Compares all lines of a file with those of the wanted text.
class Survey {
 public:
  explicit Survey(std::string_view wanted) {
    std::string longest;
    for (std::size_t at = 0; at < wanted.size(); at = next_line(wanted, at)) {
      m_wanted.push_back(line_at(wanted, at));
      const std::string folded = fold(m_wanted.back());
      if (folded.size() >= k_min_line_bytes && m_index.size() < k_max_known_lines) {
        m_index.try_emplace(std::hash<std::string>()(folded), m_wanted.size() - 1);
        m_known_bytes += folded.size();
      }
      if (folded.size() > longest.size()) {
        longest = folded;
      }
    }
    m_longest = Pairs(longest);
  }

  void look_at(std::string_view line, Line place) {
    m_folded.clear();
    fold_into(m_folded, line);
    if (m_folded.size() < k_min_line_bytes) {
      return;
    }
    if (const auto known = m_index.find(std::hash<std::string>()(m_folded)); known != m_index.end()) {
      vote(place, known->second);
    }
    note_similar(Pairs(m_folded).similarity_percent(m_longest), place);
  }

  [[nodiscard]] std::string verdict(std::string_view text) const;

 private:
  struct Alignment {
    std::size_t bytes = 0;
    Line first;
    std::size_t first_wanted = 0;
  };
  struct Similar {
    std::size_t percent;
    Line place;
  };

  void vote(Line place, std::size_t wanted) {
    const auto start = static_cast<std::ptrdiff_t>(place.number) - static_cast<std::ptrdiff_t>(wanted);
    auto found = m_alignments.find(start);
    if (found == m_alignments.end()) {
      if (m_alignments.size() == k_max_alignments) {
        return;
      }
      found = m_alignments.emplace(start, Alignment{0, place, wanted}).first;
    }
    found->second.bytes += m_folded.size();
  }

  void note_similar(std::size_t percent, Line place) {
    if (percent < k_min_similarity_percent) {
      return;
    }
    const auto worse =
        std::find_if(m_similar.begin(), m_similar.end(), [&](const Similar& s) { return s.percent < percent; });
    m_similar.insert(worse, {percent, place});
    m_similar.resize(std::min(m_similar.size(), k_max_similar_lines), {});
  }

  [[nodiscard]] bool is_like(std::size_t wanted, std::string_view line) const;
  [[nodiscard]] std::string aligned_verdict(std::string_view text, const Alignment& best) const;

  std::vector<std::string_view> m_wanted;
  std::unordered_map<std::size_t, std::size_t> m_index;  // hash of a folded line to its first index in m_wanted
  std::size_t m_known_bytes = 0;                         // of the lines in m_index
  Pairs m_longest{{}};
  std::unordered_map<std::ptrdiff_t, Alignment> m_alignments;  // by the line in which m_wanted would start
  std::vector<Similar> m_similar;                              // best first
  std::string m_folded;
};

/// Describes a place where some lines match, and the first line that differs.
std::string Survey::aligned_verdict(std::string_view text, const Alignment& best) const {
  Line place = best.first;
  std::size_t wanted = best.first_wanted;
  for (; wanted > 0 && place.at > 0; --wanted) {
    place = {line_start(text, place.at - 1), place.number - 1};
  }
  std::string where = wanted == 0 ? "" : ", but there the file begins";
  const std::size_t first = place.number;
  Line shown = place;
  std::size_t lines = 0;
  for (; wanted < m_wanted.size() && place.at < text.size(); ++wanted) {
    if (is_like(wanted, line_at(text, place.at))) {
      ++lines;
    } else if (where.empty()) {
      where = fmt::format(", but line {} is not line {} of oldString, which is\n        {}", place.number, wanted + 1,
                          printable_line(m_wanted[wanted], k_shown_line_bytes));
    }
    if (where.empty()) {
      shown = place;
    }
    place = {next_line(text, place.at), place.number + 1};
  }
  if (where.empty() && wanted < m_wanted.size()) {
    where = ", but there the file ends";
  }
  return fmt::format("{} of its {} lines {} there from line {} on{}\nThe file has{}", lines, m_wanted.size(),
                     lines == 1 ? "is" : "are", first, where,
                     shown_lines(text, shown.at, shown.number, k_lines_of_context));
}

/// Compares two lines. The first and the last line of the wanted text may be parts of lines.
bool Survey::is_like(std::size_t wanted, std::string_view line) const {
  const std::string folded = fold(line);
  const std::string like = fold(m_wanted[wanted]);
  return folded == like || (wanted == 0 && folded.ends_with(like)) ||
         (wanted + 1 == m_wanted.size() && folded.starts_with(like));
}

std::string Survey::verdict(std::string_view text) const {
  const auto best = std::max_element(m_alignments.begin(), m_alignments.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.bytes, -a.first) < std::pair(b.second.bytes, -b.first);
  });
  if (best != m_alignments.end() && (m_similar.empty() || best->second.bytes * k_min_share >= m_known_bytes)) {
    return aligned_verdict(text, best->second);
  }
  if (m_similar.empty()) {
    return "nothing in the file is similar to it";
  }
  std::string shown = "the most similar lines are";
  for (const auto& [percent, place] : m_similar) {
    shown += shown_lines(text, place.at, place.number, 1);
  }
  return shown;
}

}  // namespace

std::string explain_no_match(std::string_view text, std::string_view wanted) {
  if (text.empty()) {
    return "the file is empty";
  }
  if (const auto overlooked = find_overlooked(text, wanted)) {
    return describe(*overlooked, text);
  }
  Survey survey(wanted);
  Line place{0, 1};
  while (place.at < text.size()) {
    survey.look_at(line_at(text, place.at), place);
    place = {next_line(text, place.at), place.number + 1};
  }
  return survey.verdict(text);
}

}  // namespace dockbridge::agent
