#include "agent/files/searching.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "agent/files/find_files.hpp"
#include "agent/files/listing.hpp"
#include "agent/files/search.hpp"
#include "util/json_text.hpp"
#include "util/text.hpp"
#include "wire/file_entry.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr std::size_t k_most_body_bytes = wire::k_max_body_to_host - 4096;
constexpr std::size_t k_shown_path_bytes = 300;
constexpr std::int64_t k_ns_per_ms = 1'000'000;

const char* name_of(FileType type) {
  switch (type) {
    case FileType::regular:
      return "file";
    case FileType::directory:
      return "directory";
    case FileType::symlink:
      return "link";
    case FileType::fifo:
      return "fifo";
    case FileType::socket:
      return "socket";
    case FileType::character_device:
      return "char";
    case FileType::block_device:
      return "block";
    case FileType::unknown:
      break;
  }
  return "unknown";
}

/// One text after another, for as long as they fit into a message.
class BoundedBody {
 public:
  /// False if there is no room for it.
  bool add(std::string_view text) {
    if (m_text.size() + text.size() > k_most_body_bytes) {
      return false;
    }
    m_text += text;
    ++m_count;
    return true;
  }
  [[nodiscard]] std::uint64_t count() const { return m_count; }
  std::string take() { return std::move(m_text); }

 private:
  std::string m_text;
  std::uint64_t m_count = 0;
};

/// Where a search begins.
struct Start {
  ResolvedFile file;
  Fd fd;
  Fd top;  ///< the root of the file tools, if they have one
};

Result<Start> start_of(const FileSpace& space, const json& head, bool may_be_file) {
  Start start;
  auto file = space.find(head.at("path").get<std::string>());
  if (!file) {
    return fail(file.error());
  }
  start.file = std::move(*file);
  if (!start.file.is_directory() && !(may_be_file && start.file.is_regular())) {
    return fail(
        ErrorCode::not_a_directory,
        fmt::format("Not a directory: {}", printable_line(start.file.path, k_shown_path_bytes)),
        may_be_file ? "Pass a directory or a file" : "Pass the directory that contains it. file_read reads files");
  }
  auto fd = start.file.is_directory() ? start.file.open_directory() : start.file.open_for_reading();
  if (!fd) {
    return fail(fd.error());
  }
  start.fd = std::move(*fd);
  if (const std::string root = head.value("root", std::string()); !root.empty()) {
    auto top = space.find(root).and_then([](const ResolvedFile& found) { return found.open_directory(); });
    if (!top) {
      return fail(top.error());
    }
    start.top = std::move(*top);
  }
  return start;
}

template <typename Found>
json totals_of(const Start& start, const Found& found) {
  // Those of a deep tree would not fit into a head.
  json unreadable = json::array();
  for (const std::string& path : found.unreadable_paths) {
    unreadable.push_back(printable_line(path, k_shown_path_bytes));
  }
  return {{"path", start.file.path},
          {"hidden", found.hidden_skipped},
          {"ignored", found.ignored_skipped},
          {"unreadable", found.unreadable},
          {"unreadablePaths", std::move(unreadable)}};
}

/// A page of entries, as far as they fit.
template <typename Found, typename Names, typename EntryOf>
Findings findings_of(const Start& start, const Found& found, const Names& page, EntryOf entry_of) {
  BoundedBody entries;
  bool fits = true;
  for (std::size_t i = 0; i < page.size() && fits; ++i) {
    fits = entries.add(wire::encode(entry_of(page[i])));
  }
  Findings findings{totals_of(start, found), {}};
  findings.head["total"] = found.total;
  findings.head["shown"] = fits ? found.shown : entries.count();
  findings.head["more"] = found.more || !fits;
  findings.body = entries.take();
  return findings;
}

Result<Findings> list(const FileSpace& space, const json& head) {
  const auto start = start_of(space, head, false);
  if (!start) {
    return fail(start.error());
  }
  ListRequest request;
  request.ignore = head.at("ignore").get<std::vector<std::string>>();
  request.depth = head.at("depth").get<std::uint32_t>();
  request.honour_ignore = head.at("honourIgnore").get<bool>();
  request.details = head.at("details").get<bool>();
  request.top_fd = start->top.get();
  request.offset = head.at("offset").get<std::uint64_t>();
  request.max = head.at("max").get<std::size_t>();
  const auto found = list_directory(start->fd.get(), request);
  if (!found) {
    return fail(found.error());
  }
  return findings_of(*start, *found, found->entries, [](const ListedName& entry) {
    return wire::FileEntry{entry.path, name_of(entry.type), entry.size, entry.modified_ns / k_ns_per_ms,
                           entry.mode, entry.link_target};
  });
}

Result<Findings> glob(const FileSpace& space, const json& head) {
  const auto start = start_of(space, head, false);
  if (!start) {
    return fail(start.error());
  }
  FindRequest request;
  request.pattern = head.at("pattern").get<std::string>();
  request.honour_ignore = head.at("honourIgnore").get<bool>();
  request.hidden = head.at("hidden").get<bool>();
  request.top_fd = start->top.get();
  request.order = head.at("newestFirst").get<bool>() ? FindRequest::Order::newest_first : FindRequest::Order::path;
  request.offset = head.at("offset").get<std::uint64_t>();
  request.max = head.at("max").get<std::size_t>();
  const auto found = find_files(start->fd.get(), request);
  if (!found) {
    return fail(found.error());
  }
  return findings_of(*start, *found, found->files, [](const FoundName& file) {
    return wire::FileEntry{file.path, name_of(file.type), file.size, file.modified_ns / k_ns_per_ms};
  });
}

SearchRequest grep_request(const json& head, const Start& start) {
  SearchRequest request;
  request.pattern = head.at("pattern").get<std::string>();
  request.literal = head.at("literal").get<bool>();
  request.ignore_case = head.at("ignoreCase").get<bool>();
  request.whole_word = head.at("wholeWord").get<bool>();
  request.multi_line = head.at("multiLine").get<bool>();
  request.include = head.at("include").get<std::vector<std::string>>();
  request.exclude = head.at("exclude").get<std::vector<std::string>>();
  request.honour_ignore = head.at("honourIgnore").get<bool>();
  request.hidden = head.at("hidden").get<bool>();
  request.top_fd = start.top.get();
  request.context = head.at("context").get<std::size_t>();
  request.offset = head.at("offset").get<std::uint64_t>();
  request.max = head.at("max").get<std::size_t>();
  const auto output = head.at("output").get<std::string>();
  request.output = output == "files"   ? SearchRequest::Output::files
                   : output == "count" ? SearchRequest::Output::count
                                       : SearchRequest::Output::content;
  return request;
}

/// What was not searched as one might think.
std::vector<std::string> grep_notes(const SearchResult& found) {
  std::vector<std::string> notes;
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} {}", count, what));
    }
  };
  note(found.ignore_files_left_out, "ignore files were too large to be honoured");
  note(found.files_with_long_lines, "files have very long lines, which were searched in pieces");
  note(found.files_in_windows, "files were too large for matches of any length over several lines");
  return notes;
}

json line_fields(const FoundLine& line) {
  return {line.number, line.matches ? std::max<std::uint64_t>(line.column, 1) : 0, line.text, line.cut_before,
          line.cut_after};
}

Result<Findings> grep(const FileSpace& space, const json& head) {
  const auto start = start_of(space, head, true);
  if (!start) {
    return fail(start.error());
  }
  const SearchRequest request = grep_request(head, *start);
  const auto found = search(start->fd.get(), request);
  if (!found) {
    return fail(found.error());
  }
  const bool by_lines = request.output == SearchRequest::Output::content;
  BoundedBody files;
  std::uint64_t shown = 0;
  for (const FoundFile& file : found->files) {
    json fields = {{"path", file.path}, {"matches", file.matches}, {"lines", json::array()}};
    std::uint64_t matching = 0;
    for (const FoundLine& line : file.lines) {
      fields["lines"].push_back(line_fields(line));
      matching += line.matches && line.column > 0 ? 1 : 0;
    }
    if (!files.add((files.count() == 0 ? "" : ",") + json_text(fields))) {
      break;
    }
    shown += by_lines ? matching : 1;
  }
  const bool fits = files.count() == found->files.size();
  Findings findings{totals_of(*start, *found), "{\"files\":[" + files.take() + "]}"};
  findings.head["total"] = by_lines ? found->matches : found->files_with_matches;
  findings.head["matches"] = found->matches;
  findings.head["shown"] = fits ? found->shown : shown;
  findings.head["more"] = found->more || !fits;
  findings.head["filesWithMatches"] = found->files_with_matches;
  findings.head["filesSearched"] = found->files_searched;
  findings.head["binary"] = found->binary_skipped;
  findings.head["notes"] = grep_notes(*found);
  return findings;
}

}  // namespace

Result<Findings> run_search(const FileSpace& space, const json& head) {
  const auto operation = head.at("op").get<std::string>();
  return operation == "file.list"   ? list(space, head)
         : operation == "file.glob" ? glob(space, head)
                                    : grep(space, head);
}

}  // namespace dockbridge::agent
