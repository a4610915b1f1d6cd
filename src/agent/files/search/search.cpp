#include "agent/files/search/search.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "agent/files/search/line_collector.hpp"
#include "agent/files/search/matcher.hpp"
#include "agent/files/search/open_beneath.hpp"
#include "agent/files/search/path_order.hpp"
#include "agent/files/search/text_reader.hpp"
#include "agent/files/search/tree_walk.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

/// Files with matches that one round keeps.
constexpr std::size_t k_max_kept_files = 50'000;
constexpr std::size_t k_max_kept_path_bytes = 8 * 1024 * 1024;
constexpr std::size_t k_max_text_bytes = 4 * 1024 * 1024;
constexpr int k_file_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

using Output = wire::GrepOutput;

/// Counts matching lines, or stops at the first.
class MatchCounter : public TextSink {
 public:
  MatchCounter(const Matcher& matcher, bool one_is_enough) : m_matcher(matcher), m_one_is_enough(one_is_enough) {}

  std::size_t take_lines(std::string_view text, std::size_t cut) override {
    Matcher::LineCursor cursor(m_matcher, text);
    std::size_t done = cut;
    while (const auto lines = cursor.next()) {
      if (lines->begin >= cut) {
        break;
      }
      ++m_matches;
      if (m_one_is_enough) {
        return k_enough;
      }
      done = std::max(done, std::min(lines->end + 1, text.size()));
    }
    return done;
  }

  bool take_piece(std::string_view piece, std::size_t, bool begins, bool ends) override {
    m_line_matched = m_line_matched && !begins;
    if (!m_line_matched && m_matcher.find_in_piece(piece, begins, ends)) {
      m_line_matched = true;
      ++m_matches;
    }
    return !(m_one_is_enough && m_matches > 0);
  }

  void reset() { m_matches = 0; }
  [[nodiscard]] std::uint64_t matches() const { return m_matches; }

 private:
  const Matcher& m_matcher;
  bool m_one_is_enough;
  bool m_line_matched = false;
  std::uint64_t m_matches = 0;
};

struct Hit {
  std::string path;
  std::uint64_t matches;

  bool operator<(const Hit& other) const { return path_less(path, other.path); }
  [[nodiscard]] std::size_t bytes() const { return path.size() + sizeof(Hit); }
};

/// Results of one thread in a round.
struct Finder {
  Finder(const Matcher& matcher, bool one_is_enough, FirstItems<Hit> first)
      : counter(matcher, one_is_enough), hits(std::move(first)) {}

  TextReader reader;
  MatchCounter counter;
  FirstItems<Hit> hits;
  SearchResult totals;
};

class Search {
 public:
  Search(int start_fd, const wire::FileGrepRequest& request, std::size_t max_line_bytes, Matcher matcher,
         WalkOptions options)
      : m_start_fd(start_fd),
        m_request(request),
        m_max_line_bytes(max_line_bytes),
        m_matcher(std::move(matcher)),
        m_options(std::move(options)) {}

  void search_file();
  void search_tree();
  SearchResult take_result();

 private:
  std::vector<Hit> find_hits(const Hit* after, bool& all_known);
  void search_entry(int directory_fd, const char* name, std::string_view path, Finder& finder) const;
  void count(int fd, std::string_view path, Finder& finder) const;
  void show(const std::vector<Hit>& hits);
  void show_content(const Hit& hit, std::uint64_t skip);
  [[nodiscard]] std::uint64_t wanted_end() const { return m_request.offset + m_request.max; }
  [[nodiscard]] bool is_full() const { return m_shown_end || m_result.shown == m_request.max; }

  int m_start_fd;
  const wire::FileGrepRequest& m_request;
  std::size_t m_max_line_bytes;
  Matcher m_matcher;
  WalkOptions m_options;
  SearchResult m_result;
  std::uint64_t m_passed = 0;  // matches or files before the current hit
  std::size_t m_text_bytes = 0;
  bool m_shown_end = false;  // the text of the page has its maximum size
  TextReader m_reader;
};

void add_totals(SearchResult& to, const SearchResult& from) {
  to.matches += from.matches;
  to.files_with_matches += from.files_with_matches;
  to.files_searched += from.files_searched;
  to.binary_skipped += from.binary_skipped;
  to.files_with_long_lines += from.files_with_long_lines;
  to.files_in_windows += from.files_in_windows;
  to.walked.add_unreadable(from.walked);
}

void Search::search_file() {
  Finder finder(m_matcher, m_request.output == Output::files, FirstItems<Hit>(1, k_max_kept_path_bytes));
  count(m_start_fd, "", finder);
  add_totals(m_result, finder.totals);
  show(finder.hits.sorted());
}

void Search::search_tree() {
  bool all_known = false;
  std::vector<Hit> hits = find_hits(nullptr, all_known);
  show(hits);
  while (!is_full() && !all_known && !hits.empty()) {
    const Hit last = std::move(hits.back());
    hits = find_hits(&last, all_known);
    show(hits);
  }
}

SearchResult Search::take_result() {
  const bool is_content = m_request.output == Output::content;
  m_result.more = (is_content ? m_result.matches : m_result.files_with_matches) > m_request.offset + m_result.shown;
  return std::move(m_result);
}

/// One round through the tree. The first round also sets the totals.
std::vector<Hit> Search::find_hits(const Hit* after, bool& all_known) {
  const unsigned threads = walk_threads();
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(wanted_end(), k_max_kept_files));
  std::vector<std::unique_ptr<Finder>> finders;
  for (unsigned thread = 0; thread < threads; ++thread) {
    finders.push_back(std::make_unique<Finder>(m_matcher, m_request.output == Output::files,
                                               FirstItems<Hit>(most, k_max_kept_path_bytes / threads, after)));
  }
  WalkTotals walked = walk_tree(m_start_fd, m_options, threads, [&](const WalkEntry& entry) {
    if (entry.type == FileType::regular) {
      search_entry(entry.directory_fd, entry.name, entry.path, *finders[entry.thread]);
    }
  });
  FirstItems<Hit> hits = std::move(finders[0]->hits);
  for (unsigned thread = 1; thread < threads; ++thread) {
    hits.merge(std::move(finders[thread]->hits));
  }
  if (after == nullptr) {
    m_result.walked = std::move(walked);
    for (const auto& finder : finders) {
      add_totals(m_result, finder->totals);
    }
    std::sort(m_result.walked.unreadable_paths.begin(), m_result.walked.unreadable_paths.end());
  }
  all_known = !hits.has_limit();
  return hits.sorted();
}

void Search::search_entry(int directory_fd, const char* name, std::string_view path, Finder& finder) const {
  const Fd file(::openat(directory_fd, name, k_file_flags));
  if (file) {
    count(file.get(), path, finder);
  } else if (errno != ENOENT && errno != ELOOP && errno != ENXIO) {  // otherwise it was removed or replaced
    finder.totals.walked.add_unreadable(path, std::strerror(errno));
  }
}

void Search::count(int fd, std::string_view path, Finder& finder) const {
  finder.counter.reset();
  const TextReader::Outcome outcome = finder.reader.read(fd, finder.counter, m_request.multi_line);
  if (outcome == TextReader::Outcome::binary) {
    ++finder.totals.binary_skipped;
    return;
  }
  if (outcome == TextReader::Outcome::unreadable) {
    finder.totals.walked.add_unreadable(path, std::strerror(errno));
    return;
  }
  ++finder.totals.files_searched;
  finder.totals.files_with_long_lines += finder.reader.had_long_line() ? 1 : 0;
  finder.totals.files_in_windows += finder.reader.had_windows() ? 1 : 0;
  const std::uint64_t matches = finder.counter.matches();
  if (matches > 0) {
    ++finder.totals.files_with_matches;
    finder.totals.matches += m_request.output == Output::files ? 0 : matches;
    finder.hits.add({std::string(path), matches});
  }
}

void Search::show(const std::vector<Hit>& hits) {
  for (const Hit& hit : hits) {
    if (is_full()) {
      return;
    }
    const std::uint64_t units = m_request.output == Output::content ? hit.matches : 1;
    const std::uint64_t skip = m_request.offset - std::min(m_request.offset, m_passed);
    m_passed += units;
    if (skip >= units) {
      continue;
    }
    if (m_request.output == Output::content) {
      show_content(hit, skip);
    } else {
      m_result.files.push_back({hit.path, m_request.output == Output::files ? 0 : hit.matches});
      ++m_result.shown;
      m_text_bytes += hit.bytes();
      m_shown_end = m_text_bytes >= k_max_text_bytes;
    }
  }
}

/// Reads the file again: the lines to show were not known before.
void Search::show_content(const Hit& hit, std::uint64_t skip) {
  const Fd opened = hit.path.empty() ? Fd() : open_beneath(m_start_fd, hit.path, k_file_flags);
  const int fd = hit.path.empty() ? m_start_fd : opened.get();
  const auto take =
      static_cast<std::size_t>(std::min<std::uint64_t>(hit.matches - skip, m_request.max - m_result.shown));
  LineCollector collector(m_matcher, {skip, take, m_request.context, m_max_line_bytes,
                                      k_max_text_bytes - std::min(k_max_text_bytes, m_text_bytes)});
  if (fd >= 0 && m_reader.read(fd, collector, m_request.multi_line) != TextReader::Outcome::read) {
    collector.lines().clear();
  }
  m_text_bytes += collector.text_bytes() + hit.bytes();
  m_shown_end = m_text_bytes >= k_max_text_bytes;
  // Matches that vanished since they were counted count as shown. Otherwise, the next page would begin too early.
  m_result.shown += m_shown_end ? std::max<std::size_t>(collector.taken(), 1) : take;
  if (!collector.lines().empty()) {
    m_result.files.push_back({hit.path, hit.matches, std::move(collector.lines())});
  }
}

}  // namespace

Result<SearchResult> search(int start_fd, const wire::FileGrepRequest& request, int top_fd,
                            std::size_t max_line_bytes) {
  auto matcher =
      Matcher::compile(request.pattern, {request.literal, request.ignore_case, request.whole_word, request.multi_line});
  if (!matcher) {
    return fail(matcher.error());
  }
  auto include = Glob::compile_all(request.include);
  if (!include) {
    return fail(include.error());
  }
  auto exclude = Glob::compile_all(request.exclude);
  if (!exclude) {
    return fail(exclude.error());
  }
  struct stat info {};
  if (::fstat(start_fd, &info) != 0 || !(S_ISDIR(info.st_mode) || S_ISREG(info.st_mode))) {
    return fail(ErrorCode::not_searchable, "Neither a file nor a directory");
  }
  Search search(start_fd, request, max_line_bytes, std::move(*matcher),
                {request.honour_ignore_files, request.hidden, 0, std::move(*include), std::move(*exclude), top_fd});
  S_ISDIR(info.st_mode) ? search.search_tree() : search.search_file();
  return search.take_result();
}

}  // namespace dockbridge::agent
