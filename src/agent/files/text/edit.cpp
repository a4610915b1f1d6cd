#include "agent/files/text/edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/files/text/encoding.hpp"
#include "agent/files/text/find_text.hpp"
#include "agent/files/text/near_match.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_result_bytes = 128 * 1024 * 1024;
constexpr std::size_t k_max_named_lines = 10;

/// An edit with the line ends of the file.
struct Replacement {
  std::string old_text;
  std::string new_text;
};

std::string with_crlf(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    if (c == '\n') {
      out.push_back('\r');
    }
    out.push_back(c);
  }
  return out;
}

/// True if the line at this position, or the previous one if it is the last, ends with CR LF.
bool is_in_crlf_line(std::string_view text, std::size_t at) {
  std::size_t end = text.find('\n', at);
  if (end == std::string_view::npos) {
    end = text.rfind('\n', at);
  }
  return end != std::string_view::npos && end > 0 && text[end - 1] == '\r';
}

/// Returns one replacement, or two for a file with mixed line ends.
std::vector<Replacement> replacements_for(std::string_view text, LineEnds ends, const TextEdit& edit) {
  const LineEnds old_ends = line_ends_of(edit.old_text);
  const bool is_to_the_letter = old_ends == LineEnds::crlf || old_ends == LineEnds::mixed;
  const auto as_given = [&] { return Replacement{edit.old_text, edit.new_text}; };
  const auto adapted = [&] {
    const bool new_is_lf = line_ends_of(edit.new_text) == LineEnds::lf;
    return Replacement{with_crlf(edit.old_text), new_is_lf ? with_crlf(edit.new_text) : edit.new_text};
  };
  if (is_to_the_letter || ends == LineEnds::none || ends == LineEnds::lf) {
    return {as_given()};
  }
  if (ends == LineEnds::crlf) {
    return {adapted()};
  }
  if (old_ends == LineEnds::lf) {
    return {as_given(), adapted()};
  }
  const std::size_t place = find_text(text, edit.old_text);
  return {place != std::string_view::npos && is_in_crlf_line(text, place) ? adapted() : as_given()};
}

struct Places {
  std::size_t count = 0;
  std::vector<std::size_t> first;  // offsets of the first places
};

Places places_of(std::string_view text, std::string_view wanted) {
  Places places;
  for (std::size_t at = find_text(text, wanted); at != std::string_view::npos;
       at = find_text(text, wanted, at + wanted.size())) {
    ++places.count;
    if (places.first.size() < k_max_named_lines) {
      places.first.push_back(at);
    }
  }
  return places;
}

std::string lines_of(std::string_view text, std::vector<std::size_t> places, std::size_t count) {
  std::sort(places.begin(), places.end());
  places.resize(std::min(places.size(), k_max_named_lines));
  std::vector<std::size_t> lines;
  std::size_t line = 1;
  std::size_t counted = 0;
  for (const std::size_t place : places) {
    const std::string_view between = text.substr(counted, place - counted);
    line += static_cast<std::size_t>(std::count(between.begin(), between.end(), '\n'));
    counted = place;
    lines.push_back(line);
  }
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return fmt::format("line{} {}{}", lines.size() == 1 ? "" : "s", fmt::join(lines, ", "),
                     count > places.size() ? " and more" : "");
}

tl::unexpected<Error> ambiguous(std::string_view text, const std::vector<std::size_t>& places, std::size_t count) {
  return fail(ErrorCode::ambiguous_match,
              fmt::format("oldString occurs {} times, in {}", count, lines_of(text, places, count)));
}

/// Error `ambiguous_match` unless there is exactly one place. Overlapping places count.
Result<void> check_unique(std::string_view text, std::span<const Replacement> replacements,
                          std::span<const Places> places, std::size_t count) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < replacements.size(); ++i) {
    all.insert(all.end(), places[i].first.begin(), places[i].first.end());
    if (count == 1 && places[i].count == 1) {
      const std::size_t overlapping = find_text(text, replacements[i].old_text, all.front() + 1);
      if (overlapping != std::string_view::npos) {
        all.push_back(overlapping);
        return ambiguous(text, all, 2);
      }
    }
  }
  if (count > 1) {
    return ambiguous(text, all, count);
  }
  return {};
}

void replace_all(std::string& text, const Replacement& replacement, std::size_t count) {
  std::string out;
  out.reserve(text.size() - count * replacement.old_text.size() + count * replacement.new_text.size());
  std::size_t from = 0;
  for (std::size_t at = find_text(text, replacement.old_text); at != std::string::npos;
       at = find_text(text, replacement.old_text, from)) {
    out.append(text, from, at - from);
    out.append(replacement.new_text);
    from = at + replacement.old_text.size();
  }
  out.append(text, from);
  text = std::move(out);
}

Result<std::size_t> apply_edit(std::string& text, LineEnds ends, const TextEdit& edit) {
  if (edit.old_text.empty()) {
    return fail(ErrorCode::empty_old_text, "oldString is empty");
  }
  const std::vector<Replacement> replacements = replacements_for(text, ends, edit);
  if (edit.old_text == edit.new_text || replacements.front().old_text == replacements.front().new_text) {
    return fail(ErrorCode::identical_texts, "oldString and newString are the same");
  }
  std::vector<Places> places;
  std::size_t count = 0;
  std::size_t result_bytes = text.size();
  for (const auto& [old_text, new_text] : replacements) {
    places.push_back(places_of(text, old_text));
    count += places.back().count;
    result_bytes += places.back().count * (new_text.size() - std::min(new_text.size(), old_text.size()));
  }
  if (count == 0) {
    return fail(ErrorCode::no_match,
                "oldString is not in the file; " + explain_no_match(text, replacements.front().old_text),
                "Copy the text from file_read exactly, without the line numbers");
  }
  if (!edit.replace_all) {
    if (auto unique = check_unique(text, replacements, places, count); !unique) {
      return fail(unique.error());
    }
  }
  if (result_bytes > k_max_result_bytes) {
    return fail(ErrorCode::result_too_large, fmt::format("The file would grow to {}", human_bytes(result_bytes)));
  }
  // The replacement with CR LF first: the new text of the other may contain CR LF.
  for (std::size_t i = replacements.size(); i-- > 0;) {
    if (places[i].count > 0) {
      replace_all(text, replacements[i], places[i].count);
    }
  }
  return count;
}

}  // namespace

Result<Edited> apply_edits(std::string_view text, std::span<const TextEdit> edits) {
  const LineEnds ends = line_ends_of(text);
  Edited edited{std::string(text), {}};
  for (const TextEdit& edit : edits) {
    const auto count = apply_edit(edited.text, ends, edit);
    if (!count) {
      Error error = count.error();
      const std::size_t number = edited.replacements.size() + 1;
      if (number > 1 && error.code == ErrorCode::no_match && find_text(text, edit.old_text) != std::string_view::npos) {
        error.message += ". It was there before the edits ahead of it in this call";
      }
      return fail(edits.size() == 1 ? error : error.within(fmt::format("Edit {} of {}", number, edits.size())));
    }
    edited.replacements.push_back(*count);
  }
  return edited;
}

}  // namespace dockbridge::agent
