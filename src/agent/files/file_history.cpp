#include "agent/files/file_history.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <charconv>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_seen = "files_seen";
constexpr const char* k_changes = "files_changed";
constexpr char k_separator = '\t';

/// Fit to stand between separators.
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

/// The last line of `lines` that begins with `start`, without it.
std::optional<std::string_view> last_line(std::string_view lines, const std::string& start) {
  const std::string wanted = "\n" + start;
  std::optional<std::string_view> found;
  if (lines.starts_with(start)) {
    found = lines.substr(start.size());
  }
  for (std::size_t at = lines.find(wanted); at != std::string_view::npos; at = lines.find(wanted, at + 1)) {
    found = lines.substr(at + wanted.size());
  }
  return found ? std::optional(found->substr(0, found->find('\n'))) : std::nullopt;
}

}  // namespace

void FileHistory::note_seen(const std::string& owner, const std::string& path, const std::string& revision) const {
  // If it cannot be kept (disk full), the file has to be read once more before it is written.
  (void)append(k_seen, fmt::format("\n{}\t{}\t{}\n", escaped(owner), escaped(path), revision));
}

std::optional<std::string> FileHistory::last_seen(const std::string& owner, const std::string& path) const {
  const std::string lines = lines_of(k_seen);
  const auto found = last_line(lines, fmt::format("{}\t{}\t", escaped(owner), escaped(path)));
  return found ? std::optional(std::string(*found)) : std::nullopt;
}

Result<void> FileHistory::note_change(const FileChange& change) const {
  return append(k_changes, fmt::format("\n{}\t{}\t{}\t{}\t{:o}\n", escaped(change.path), change.id, change.before,
                                       change.after, change.mode));
}

std::optional<FileChange> FileHistory::find_change(const std::string& path,
                                                   const std::optional<std::string>& id) const {
  const std::string lines = lines_of(k_changes);
  const auto found = last_line(lines, escaped(path) + k_separator + (id ? *id + k_separator : ""));
  if (!found) {
    return std::nullopt;
  }
  auto fields = fields_of(*found);
  if (id) {
    fields.insert(fields.begin(), *id);
  }
  if (fields.size() != 4) {
    return std::nullopt;
  }
  FileChange change{std::string(fields[0]), path, std::string(fields[1]), std::string(fields[2]), 0};
  std::from_chars(fields[3].data(), fields[3].data() + fields[3].size(), change.mode, 8);
  return change;
}

std::string FileHistory::new_change_id() {
  std::uint64_t number = 0;
  // Not a secret: only different from the others.
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    number = static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("change_{:016x}", number);
}

Result<void> FileHistory::append(const char* log, const std::string& line) const {
  const Fd file(::openat(m_state_fd, log, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) {
    return fail(errno_error(log));
  }
  if (auto written = write_all(file.get(), line); !written) {
    return written;
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || static_cast<std::size_t>(info.st_size) <= k_most_log_bytes ||
      ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return {};
  }
  // A line that another process adds at this moment may be lost: then a file has to be read once more.
  const std::string lines = lines_of(log);
  const std::size_t half = lines.find('\n', lines.size() / 2);
  // One that cannot be read, as it grew too long all the same, begins anew.
  return replace_file_at(m_state_fd, log, half == std::string::npos ? line : lines.substr(half + 1));
}

std::string FileHistory::lines_of(const char* log) const {
  return read_file_at(m_state_fd, log, k_most_log_bytes * 2).value_or("");
}

}  // namespace dockbridge::agent
