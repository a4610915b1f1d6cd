#include "agent/files/change/file_history.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <vector>

#include "agent/files/revision.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_seen = "files_seen";
constexpr const char* k_changes = "files_changed";
constexpr char k_separator = '\t';
/// Size of the part at the end of a log that is searched first, and its growth while nothing is found.
constexpr std::size_t k_first_window = 4 * 1024;
constexpr std::size_t k_window_growth = 16;
constexpr std::size_t k_max_window = k_first_window * k_window_growth * k_window_growth;
static_assert(k_max_window >= FileHistory::k_max_log_bytes * 2);

/// Escapes line ends and separators.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '\\':
        safe += "\\\\";
        break;
      case '\n':
        safe += "\\n";
        break;
      case k_separator:
        safe += "\\t";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = line.find(k_separator);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) {
      return fields;
    }
    line.remove_prefix(end + 1);
  }
}

}  // namespace

void FileHistory::note_seen(const std::string& owner, const std::string& path, const SeenContent& seen) const {
  const std::string lines = seen.lines == SeenContent::k_all_lines ? "" : fmt::format("\t{}", seen.lines);
  // If this fails (disk full), the owner has to read the file again before it can write it.
  (void)append(k_seen, fmt::format("\n{}\t{}\t{}{}\n", escaped(owner), escaped(path), seen.revision, lines));
}

std::optional<SeenContent> FileHistory::last_seen(const std::string& owner, const std::string& path) const {
  const auto found = last_line(k_seen, fmt::format("{}\t{}\t", escaped(owner), escaped(path)));
  const auto fields = found ? fields_of(*found) : std::vector<std::string_view>();
  if (fields.empty() || fields.size() > 2 || !(fields[0].empty() || is_revision(fields[0]))) {
    return std::nullopt;
  }
  SeenContent seen{std::string(fields[0])};
  if (fields.size() == 2) {
    const char* end = fields[1].data() + fields[1].size();
    const auto lines = std::from_chars(fields[1].data(), end, seen.lines);
    return lines.ec == std::errc() && lines.ptr == end ? std::optional(seen) : std::nullopt;
  }
  return seen;
}

Result<void> FileHistory::note_change(const FileChange& change) const {
  return append(k_changes, fmt::format("\n{}\t{}\t{}\t{}\t{:o}\n", escaped(change.path), change.id, change.before,
                                       change.after, change.mode));
}

std::optional<FileChange> FileHistory::find_change(const std::string& path,
                                                   const std::optional<std::string>& id) const {
  std::string start;
  if (id) {
    if (!wire::is_change_start(*id)) {
      return std::nullopt;
    }
    start = id->starts_with(wire::k_change_prefix) ? *id : std::string(wire::k_change_prefix) + *id;
  }
  const auto found = last_line(k_changes, escaped(path) + k_separator + start);
  if (!found) {
    return std::nullopt;
  }
  const std::string line = start + *found;
  const auto fields = fields_of(line);
  const auto is_revision_or_none = [](std::string_view text) { return text.empty() || is_revision(text); };
  if (fields.size() != 4 || !wire::is_change_id(fields[0]) || !is_revision_or_none(fields[1]) ||
      !is_revision_or_none(fields[2])) {
    return std::nullopt;
  }
  FileChange change{std::string(fields[0]), path, std::string(fields[1]), std::string(fields[2]), 0};
  const char* end = fields[3].data() + fields[3].size();
  const auto mode = std::from_chars(fields[3].data(), end, change.mode, 8);
  return mode.ec == std::errc() && mode.ptr == end && change.mode <= wire::k_permissions ? std::optional(change)
                                                                                         : std::nullopt;
}

std::string FileHistory::new_change_id() {
  std::uint64_t number = 0;
  // Not a secret. It only has to differ from other ids.
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    number = static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("{}{:016x}", wire::k_change_prefix, number);
}

Result<void> FileHistory::append(const char* log, const std::string& line) const {
  constexpr int k_flags = O_RDWR | O_CREAT | O_APPEND;
  Fd file = open_regular_at(m_state_fd, log, k_flags);
  if (!file && (errno == EINVAL || errno == ELOOP || errno == ENXIO)) {
    // Another process replaced the log by a FIFO, a socket or a link. Without a log every change would fail, so it is
    // created again.
    ::unlinkat(m_state_fd, log, 0);
    file = open_regular_at(m_state_fd, log, k_flags);
  }
  if (!file) {
    return fail(errno_error(log));
  }
  if (auto written = write_all(file.get(), line); !written) {
    return written;
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || static_cast<std::size_t>(info.st_size) <= k_max_log_bytes ||
      ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return {};
  }
  // A line that another process adds at this moment may be lost. Then a file has to be read again.
  const std::string lines = lines_of(log);
  const std::size_t half = lines.find('\n', lines.size() / 2);
  // A log that exceeds what is read starts again with this line.
  return replace_file_at(m_state_fd, log, half == std::string::npos ? line : lines.substr(half + 1));
}

/// Searches from the end, because most queries concern recent lines.
std::optional<std::string> FileHistory::last_line(const char* log, const std::string& start) const {
  const Fd file = open_regular_at(m_state_fd, log, O_RDONLY);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  const std::string wanted = "\n" + start;
  for (std::size_t window = k_first_window; window <= k_max_window; window *= k_window_growth) {
    const std::size_t length = std::min(size, window);
    std::string lines(1 + length, '\n');  // with a line end before the very first line
    if (::pread(file.get(), lines.data() + 1, length, static_cast<off_t>(size - length)) !=
        static_cast<ssize_t>(length)) {
      return std::nullopt;
    }
    const std::size_t at = lines.rfind(wanted);
    // A window may begin within a line.
    if (at != std::string::npos && (at > 0 || length == size)) {
      const std::size_t begin = at + wanted.size();
      return lines.substr(begin, lines.find('\n', begin) - begin);
    }
    if (length == size) {
      break;
    }
  }
  return std::nullopt;
}

std::string FileHistory::lines_of(const char* log) const {
  return read_regular_at(m_state_fd, log, k_max_log_bytes * 2).value_or("");
}

}  // namespace dockbridge::agent
