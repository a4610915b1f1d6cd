#include "agent/files/text/text_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/files/revision.hpp"
#include "agent/files/text/line_comparison.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_start_bytes = 512;
constexpr std::size_t k_chunk_bytes = 256ULL * 1024;
/// Bytes that decide the encoding of a file that is not read as a whole.
constexpr std::uint64_t k_judged_bytes = 4ULL * 1024 * 1024;
constexpr int k_max_tries = 3;

/// Number of bytes of the next piece of a line before a column. `passed` counts the characters of all pieces.
std::size_t bytes_to_column(std::string_view piece, std::uint64_t column, bool is_latin1, std::uint64_t& passed) {
  std::size_t at = 0;
  for (; at < piece.size(); ++at) {
    const bool begins = is_latin1 || begins_character(piece[at]);
    if (begins && passed == column) {
      break;
    }
    passed += begins ? 1 : 0;
  }
  return at;
}

/// Number of bytes of the first characters; all bytes if the text is shorter.
std::size_t bytes_of_characters(std::string_view text, std::uint64_t characters) {
  std::uint64_t passed = 0;
  return text.size() <= characters ? text.size() : bytes_to_column(text, characters, false, passed);
}

std::uint64_t characters_of(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(text.begin(), text.end(), begins_character));
}

/// Number of bytes of whole characters that `most` bytes can hold; at least one character.
std::size_t bytes_that_fit(std::string_view text, std::size_t most) {
  const std::string_view start = text.substr(0, most);
  const std::size_t bytes = start.size() - incomplete_utf8_tail(start);
  return bytes > 0 ? bytes : bytes_of_characters(text, 1);
}

/// Receives lines in order, and keeps those of the page.
class PageBuilder {
 public:
  /// `numbered` means that the number of the first line is known. Then a cut line states how to read its rest.
  PageBuilder(const PageRequest& request, std::uint64_t skip, bool numbered = true)
      : m_request(request), m_skip(skip), m_numbered(numbered) {}

  /// True if the next line is the one to which `PageRequest::column` applies.
  [[nodiscard]] bool expects_first() const { return m_seen == m_skip; }

  /// Adds a line without its end, in UTF-8. Of a very long line, the caller may pass only the part to show and the
  /// number of characters after it. The first line is passed without the skipped characters.
  void add(std::string_view line, std::uint64_t characters_left_out = 0) {
    ++m_seen;
    if (m_seen <= m_skip || m_full) {
      m_page.more = m_page.more || m_full;
      return;
    }
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    const bool continues = m_request.column > 0 && m_page.lines == 0;
    const std::size_t shown = continues ? bytes_that_fit(line, m_request.most_bytes)
                                        : bytes_of_characters(line, m_request.most_line_characters);
    const std::uint64_t cut = characters_of(line.substr(shown)) + characters_left_out;
    if (m_page.lines >= m_request.limit || (m_page.lines > 0 && m_page.text.size() + shown > m_request.most_bytes)) {
      m_full = true;
      m_page.more = true;
      return;
    }
    m_page.text.append(line.substr(0, shown));
    if (cut > 0) {
      const std::uint64_t next = (continues ? m_request.column : 0) + characters_of(line.substr(0, shown));
      m_page.text += m_numbered ? fmt::format("... [{} more characters: offset: {}, column: {}]", cut, m_seen - 1, next)
                                : fmt::format("... [{} more characters]", cut);
      ++m_page.cut_lines;
    }
    m_page.text.push_back('\n');
    ++m_page.lines;
  }
  [[nodiscard]] bool is_full() const { return m_full; }
  /// Number of the next lines that are not on the page.
  [[nodiscard]] std::uint64_t to_skip() const { return m_skip - std::min(m_skip, m_seen); }
  void skip_one() { ++m_seen; }
  TextPage take() {
    m_page.first_line = static_cast<std::int64_t>(m_skip) + 1;
    return std::move(m_page);
  }

 private:
  const PageRequest& m_request;
  std::uint64_t m_skip;
  bool m_numbered;
  std::uint64_t m_seen = 0;
  bool m_full = false;
  TextPage m_page;
};

std::uint64_t lines_to_skip(std::int64_t offset, std::uint64_t total) {
  if (offset >= 0) {
    return static_cast<std::uint64_t>(offset);
  }
  const auto from_end = static_cast<std::uint64_t>(-offset);
  return total > from_end ? total - from_end : 0;
}

void decode_whole(FileContent& content, const PageRequest& request) {
  const auto encoding = detect_encoding(*content.whole);
  if (!encoding) {
    return;
  }
  const bool as_it_is = *encoding == Encoding::utf8;
  const auto decoded = as_it_is ? Result<std::string>() : decode(*content.whole, *encoding);
  if (!decoded) {
    return;  // its start looks like text, but the rest is not
  }
  content.page = page_of(as_it_is ? *content.whole : *decoded, request);
  content.page->encoding = *encoding;
}

/// Reads a large file in pieces: as far as necessary, or to its end if it gets a revision.
class LargeFile {
 public:
  LargeFile(int fd, const std::string& path, std::uint64_t size, const PageRequest& request)
      : m_fd(fd), m_path(path), m_size(size), m_request(request) {}

  Result<void> read(FileContent& content) {
    const bool whole = m_size <= k_max_revised_bytes;
    RevisionHash hash;
    EncodingDetector detector;
    std::uint64_t total = 0;
    if (whole) {
      // The first pass gathers the facts that are needed before the first line.
      std::uint64_t at = 0;
      while (at < m_size) {
        const auto piece = read_chunk(at);
        if (!piece) {
          return fail(piece.error());
        }
        if (piece->empty()) {
          break;  // it was truncated meanwhile
        }
        hash.feed(*piece);
        m_revisions.push_back(revision_of(*piece));
        detector.feed(*piece);
        total += static_cast<std::uint64_t>(std::count(piece->begin(), piece->end(), '\n'));
        m_ends_with_newline = piece->back() == '\n';
        at += piece->size();
      }
      m_size = at;
      total += m_ends_with_newline ? 0 : 1;
      content.revision = hash.revision();
    } else {
      for (std::uint64_t at = 0; at < k_judged_bytes; at += k_chunk_bytes) {
        auto piece = read_at(m_fd, at, k_chunk_bytes, m_path);
        if (!piece) {
          return fail(piece.error());
        }
        if (at + k_chunk_bytes >= k_judged_bytes) {
          piece->resize(piece->size() - incomplete_utf8_tail(*piece));
        }
        detector.feed(*piece);
      }
    }
    const auto encoding = detector.result();
    if (!encoding || *encoding == Encoding::utf16_le || *encoding == Encoding::utf16_be) {
      return {};  // not text, or an encoding that cannot be read in pieces
    }
    m_encoding = *encoding;
    const bool from_end = m_request.offset < 0 && !whole;
    auto start = from_end ? find_from_end() : Result<std::uint64_t>(0);
    if (!start) {
      return fail(start.error());
    }
    auto page = read_lines(*start,
                           whole ? lines_to_skip(m_request.offset, total)
                                 : static_cast<std::uint64_t>(std::max<std::int64_t>(m_request.offset, 0)),
                           !from_end || *start == 0);
    if (!page) {
      return fail(page.error());
    }
    content.page = std::move(*page);
    content.page->encoding = m_encoding;
    content.page->final_newline = !whole || m_ends_with_newline;
    if (whole) {
      content.page->total_lines = total;
    }
    if (from_end && *start > 0) {
      content.page->first_line = m_request.offset;
    }
    return {};
  }

 private:
  /// Ignores bytes that were appended after the file was opened.
  [[nodiscard]] Result<std::string> read_chunk(std::uint64_t at) const {
    return read_at(m_fd, at, static_cast<std::size_t>(std::min<std::uint64_t>(k_chunk_bytes, m_size - at)), m_path);
  }

  /// Start of the requested lines, counted from the end.
  Result<std::uint64_t> find_from_end() {
    auto wanted = static_cast<std::uint64_t>(-m_request.offset);
    std::uint64_t end = m_size;
    bool last = true;
    while (end > 0) {
      const std::uint64_t begin = end > k_chunk_bytes ? end - k_chunk_bytes : 0;
      const auto piece = read_at(m_fd, begin, static_cast<std::size_t>(end - begin), m_path);
      if (!piece) {
        return fail(piece.error());
      }
      for (std::size_t i = piece->size(); i-- > 0;) {
        const bool is_final = std::exchange(last, false);
        if ((*piece)[i] == '\n' && !is_final && --wanted == 0) {
          return begin + i + 1;
        }
      }
      end = begin;
    }
    return 0;
  }

  Result<TextPage> read_lines(std::uint64_t start, std::uint64_t skip, bool numbered) {
    PageBuilder page(m_request, skip, numbered);
    std::string line;            // kept part of the unfinished line
    std::uint64_t left_out = 0;  // characters of it that are not kept
    std::uint64_t dropped = 0;   // skipped characters of the first line
    std::uint64_t crlf = 0;
    std::uint64_t lf = 0;
    char before = '\0';
    bool cut = false;
    const bool is_latin1 = m_encoding == Encoding::latin1;
    const std::size_t most_line =
        std::max((m_request.most_line_characters + 1) * 4, m_request.column > 0 ? m_request.most_bytes : 0);
    const auto finish = [&] {
      if (cut) {
        // The character at the cut is left out. The CR of the line end does not count as a character.
        const std::size_t tail = is_latin1 ? 0 : incomplete_utf8_tail(line);
        line.resize(line.size() - tail);
        left_out += (tail > 0 ? 1 : 0) - (before == '\r' ? 1 : 0);
      }
      page.add(is_latin1 ? *decode(line, Encoding::latin1) : to_valid_utf8(line).text, left_out);
      line.clear();
      left_out = 0;
      cut = false;
    };
    for (std::uint64_t at = start; at < m_size && !page.is_full();) {
      const auto piece = read_chunk(at);
      if (!piece) {
        return fail(piece.error());
      }
      // The lines must come from the reported revision.
      if (const std::size_t index = at / k_chunk_bytes;
          !m_revisions.empty() && (index >= m_revisions.size() || revision_of(*piece) != m_revisions[index])) {
        return fail(ErrorCode::file_changed,
                    fmt::format("File was written to while it was read: {}", printable_line(m_path, 300)),
                    "Read it again when nothing writes to it");
      }
      if (piece->empty()) {
        break;  // it was truncated meanwhile
      }
      at += piece->size();
      std::string_view rest = *piece;
      if (at == piece->size() && m_encoding == Encoding::utf8_bom) {
        rest.remove_prefix(3);
      }
      while (!rest.empty() && !page.is_full()) {
        const std::size_t end = rest.find('\n');
        if (page.to_skip() > 0) {
          if (end == std::string_view::npos) {
            break;
          }
          page.skip_one();
          rest.remove_prefix(end + 1);
          continue;
        }
        std::string_view part = rest.substr(0, end);
        before = part.empty() ? before : part.back();
        if (page.expects_first() && m_request.column > 0) {
          const std::size_t skipped = bytes_to_column(part, m_request.column, is_latin1, dropped);
          part.remove_prefix(skipped);
        }
        const std::size_t kept = std::min(part.size(), most_line - std::min(most_line, line.size()));
        line.append(part.substr(0, kept));
        cut = cut || kept < part.size();
        left_out += is_latin1 ? part.size() - kept : characters_of(part.substr(kept));
        if (end == std::string_view::npos) {
          break;
        }
        before == '\r' ? ++crlf : ++lf;
        finish();
        before = '\0';
        rest.remove_prefix(end + 1);
      }
    }
    const bool has_line = !line.empty() || (dropped > 0 && page.expects_first());
    if (has_line && !page.is_full()) {
      finish();
    }
    TextPage done = page.take();
    done.ends = crlf > 0 && lf > 0 ? LineEnds::mixed
                : crlf > 0         ? LineEnds::crlf
                : lf > 0           ? LineEnds::lf
                                   : LineEnds::none;
    return done;
  }

  int m_fd;
  const std::string& m_path;
  std::uint64_t m_size;
  const PageRequest& m_request;
  Encoding m_encoding = Encoding::utf8;
  bool m_ends_with_newline = true;
  std::vector<std::string> m_revisions;  ///< revision of each chunk of the file
};

}  // namespace

TextPage page_of(std::string_view text, const PageRequest& request) {
  PageBuilder builder(request, lines_to_skip(request.offset, request.offset < 0 ? count_lines(text) : 0));
  std::string_view rest = text;
  std::uint64_t total = 0;
  for (; !rest.empty() && !builder.is_full(); ++total) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    if (builder.expects_first()) {
      line.remove_prefix(bytes_of_characters(line, request.column));
    }
    builder.add(line);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  TextPage page = builder.take();
  page.total_lines = total + count_lines(rest);
  page.ends = line_ends_of(text);
  page.final_newline = text.empty() || text.back() == '\n';
  return page;
}

Result<FileContent> read_content(const ResolvedFile& file, const PageRequest& request) {
  const auto fd = file.open_for_reading();
  if (!fd) {
    return fail(fd.error());
  }
  FileContent content;
  content.size = static_cast<std::uint64_t>(file.info.st_size);
  // The size of a pseudo file is 0. The bytes that it returns count.
  const std::size_t expected = content.size > k_max_whole_bytes ? k_start_bytes : k_max_whole_bytes + 1;
  auto bytes =
      read_at(fd->get(), 0, std::min<std::size_t>(expected, std::max<std::size_t>(content.size + 1, 65536)), file.path);
  if (bytes && bytes->size() > content.size && content.size <= k_max_whole_bytes) {
    bytes = read_at(fd->get(), 0, expected, file.path);  // the file grew, or is a pseudo file
  }
  if (!bytes) {
    return fail(bytes.error());
  }
  content.start = bytes->substr(0, k_start_bytes);
  if (content.size <= k_max_whole_bytes && bytes->size() <= k_max_whole_bytes) {
    content.size = bytes->size();
    content.revision = revision_of(*bytes);
    content.whole = std::move(*bytes);
    decode_whole(content, request);
    return content;
  }
  content.size = std::max<std::uint64_t>(content.size, bytes->size());
  bytes = std::string();
  auto read = LargeFile(fd->get(), file.path, content.size, request).read(content);
  for (int tries = 1; !read && read.error().code == ErrorCode::file_changed && tries < k_max_tries; ++tries) {
    read = LargeFile(fd->get(), file.path, content.size, request).read(content);
  }
  return read ? Result<FileContent>(std::move(content)) : fail(read.error());
}

}  // namespace dockbridge::agent
