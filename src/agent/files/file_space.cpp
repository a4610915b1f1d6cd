#include "agent/files/file_space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "util/beneath.hpp"
#include "util/path_components.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

bool same_moment(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

constexpr std::size_t k_shown_path_bytes = 300;
constexpr mode_t k_directory_mode = 0777;  // minus the umask

/// Path to the file of an O_PATH handle that does not depend on a name that may have changed.
std::string way_to(const Fd& handle) {
  return fmt::format("/proc/self/fd/{}", handle.get());
}

Result<std::string> real_path(const Fd& handle) {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink(way_to(handle).c_str(), path.data(), path.size());
  if (length < 0) {
    return fail(file_error("/proc/self/fd", errno));
  }
  path.resize(static_cast<std::size_t>(length));
  return path;
}

std::pair<std::string, std::string> split_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::pair<std::string, std::string>{".", path}
                                    : std::pair{path.substr(0, slash + 1), path.substr(slash + 1)};
}

}  // namespace

std::string displayed_path(const std::string& path) {
  return printable_line(path, k_shown_path_bytes);
}

namespace {

std::string dangling_message(const std::string& path) {
  return "Target of the symbolic link is missing: " + displayed_path(path);
}

}  // namespace

Error file_error(const std::string& path, int number) {
  const std::string name = displayed_path(path);
  switch (number) {
    case ENOENT:
      return {ErrorCode::no_such_file, "No such file or directory: " + name};
    case EACCES:
    case EPERM:
      return {ErrorCode::no_permission, "Permission denied: " + name,
              ::geteuid() == 0 ? "Check the mode and the mount of the file with a command such as stat"
                               : "The agent runs as the container's user; execute_command with user: root may help"};
    case ENOTDIR:
      return {ErrorCode::not_a_directory, "Not a directory: " + name};
    case EISDIR:
      return {ErrorCode::is_a_directory, "Is a directory: " + name};
    case ELOOP:
      return {ErrorCode::symlink_loop, "Too many levels of symbolic links: " + name};
    case ENAMETOOLONG:
      return {ErrorCode::path_too_long, "File name too long"};
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::disk_full, "No space left on device: " + name};
    case EROFS:
      return {ErrorCode::read_only, "Read-only file system: " + name};
    case EXDEV:
      return {ErrorCode::outside_root, "Path leads out of the directory of --root: " + name};
    default:
      return {ErrorCode::io_error, fmt::format("{}: {}", std::strerror(number), name)};
  }
}

Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size, const std::string& path) {
  std::string bytes(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::pread(fd, bytes.data() + filled, size - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && errno != EAGAIN) {
      return fail(file_error(path, errno));
    }
    if (got <= 0) {
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

Result<Fd> ResolvedFile::open_for_reading() const {
  Fd fd(::open(way_to(handle).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return fd ? Result<Fd>(std::move(fd)) : fail(file_error(path, errno));
}

Result<Fd> ResolvedFile::open_directory() const {
  Fd fd(::open(way_to(handle).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd ? Result<Fd>(std::move(fd)) : fail(file_error(path, errno));
}

Result<void> expect_regular(const ResolvedFile& file) {
  if (file.is_directory()) {
    return fail(file_error(file.path, EISDIR));
  }
  return file.is_regular() ? Result<void>()
                           : fail(ErrorCode::not_a_file, "Not a regular file: " + displayed_path(file.path));
}

Result<void> expect_writable(const ResolvedFile& file) {
  return ::access(way_to(file.handle).c_str(), W_OK) == 0 ? Result<void>() : fail(file_error(file.path, errno));
}

Error touched_error(const std::string& path) {
  return {ErrorCode::file_changed,
          fmt::format("File was changed by another process during the call: {}", printable_line(path, 300))};
}

Result<void> expect_untouched(const FilePlace& place, const ResolvedFile& before) {
  struct stat now {};
  const bool is_untouched = ::fstatat(place.directory.get(), place.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
                            now.st_dev == before.info.st_dev && now.st_ino == before.info.st_ino &&
                            now.st_size == before.info.st_size && same_moment(now.st_mtim, before.info.st_mtim) &&
                            same_moment(now.st_ctim, before.info.st_ctim);
  return is_untouched ? Result<void>() : fail(touched_error(place.path));
}

Result<FileSpace> FileSpace::open(const std::string& root) {
  FileSpace space;
  const std::string directory = root.empty() ? "/" : root;
  space.m_directory.reset(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!space.m_directory) {
    return fail(file_error(directory, errno).within("Cannot open the directory of --root"));
  }
  if (directory != "/") {
    space.m_root = root.substr(0, root.find_last_not_of('/') + 1);
    auto real = real_path(space.m_directory);
    if (!real) {
      return fail(real.error());
    }
    space.m_real_root = std::move(*real);
  }
  return space;
}

Result<std::string> FileSpace::beneath(const std::string& path) const {
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos) {
    return fail(ErrorCode::bad_path, "The path is empty, not absolute, or has a NUL byte");
  }
  if (path.size() >= PATH_MAX) {
    return fail(file_error(path, ENAMETOOLONG));
  }
  if (!is_limited()) {
    return path;
  }
  // Only translates the path. The kernel keeps it beneath the root.
  for (const std::string& root : {m_root, m_real_root}) {
    if (path == root || path.starts_with(root + "/")) {
      const std::size_t start = path.find_first_not_of('/', root.size());
      return start == std::string::npos ? "." : path.substr(start);
    }
  }
  return fail(file_error(path, EXDEV));
}

Fd FileSpace::open_way(int from, const std::string& way, int flags) const {
  if (!is_limited()) {
    return Fd(::openat(from, way.c_str(), flags | O_CLOEXEC));
  }
  Fd opened = open_confined(from, way, flags);
  // The kernel rejects every absolute link, even one whose target is beneath the root.
  return opened || errno != EXDEV || from != m_directory.get() ? std::move(opened) : open_by_components(way, flags);
}

/// Never opens a link or "..", and continues only from a directory that it has opened beneath the root. So it stays
/// beneath the root even if directories are swapped during the walk.
Fd FileSpace::open_by_components(const std::string& way, int flags) const {
  std::vector<Fd> above;  // the opened directories, from the root down
  std::vector<std::string> pending;
  push_path_components(way, pending);
  std::size_t links = 0;
  Fd opened = open_confined(m_directory.get(), ".", O_PATH | O_DIRECTORY, Links::none);
  while (opened && !pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == "..") {
      if (above.empty()) {
        errno = EXDEV;
        return {};
      }
      opened = std::move(above.back());
      above.pop_back();
      continue;
    }
    Fd next = open_confined(opened.get(), name, O_PATH | O_NOFOLLOW);
    struct stat info {};
    if (!next || ::fstat(next.get(), &info) != 0) {
      return {};
    }
    if (!S_ISLNK(info.st_mode)) {
      above.push_back(std::move(opened));
      opened = std::move(next);
      continue;
    }
    std::string target(PATH_MAX, '\0');
    const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size());
    target.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    if (target.empty() || ++links > k_max_links) {
      errno = target.empty() ? ENOENT : ELOOP;
      return {};
    }
    if (target.front() == '/') {
      const auto rest = beneath(target);
      if (!rest) {
        errno = EXDEV;
        return {};
      }
      target = *rest;
      if (!above.empty()) {
        opened = std::move(above.front());
        above.clear();
      }
    }
    push_path_components(target, pending);
  }
  return (flags & O_PATH) != 0 || !opened ? std::move(opened) : open_confined(opened.get(), ".", flags, Links::none);
}

Result<ResolvedFile> FileSpace::find(const std::string& path) const {
  const auto way = beneath(path);
  if (!way) {
    return fail(way.error());
  }
  ResolvedFile file;
  file.handle = open_way(m_directory.get(), *way, O_PATH);
  if (!file.handle || ::fstat(file.handle.get(), &file.info) != 0) {
    const int number = errno;
    const bool is_link = number == ENOENT && open_way(m_directory.get(), *way, O_PATH | O_NOFOLLOW);
    return is_link ? fail(ErrorCode::no_such_file, dangling_message(path), "Correct the link, or create its target")
                   : fail(file_error(path, number));
  }
  auto real = real_path(file.handle);
  if (!real) {
    return fail(real.error());
  }
  file.path = std::move(*real);
  return file;
}

Result<FilePlace> FileSpace::place_of(const ResolvedFile& file) const {
  FilePlace place;
  place.path = file.path;
  const auto way = beneath(file.path);
  if (!way) {
    return fail(way.error());
  }
  auto [directory, name] = split_path(*way);
  place.name = std::move(name);
  place.directory = open_confined(m_directory.get(), directory.front() == '/' ? "." + directory : directory,
                                  O_RDONLY | O_DIRECTORY, Links::none);
  if (!place.directory && !is_limited() && (errno == ENOSYS || errno == EPERM)) {
    // A kernel or a sandbox without openat2. The check below ensures that it is the same file.
    place.directory = open_way(m_directory.get(), directory, O_RDONLY | O_DIRECTORY);
  }
  struct stat info {};
  if (!place.directory || ::fstatat(place.directory.get(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail(file_error(file.path, errno));
  }
  if (info.st_dev != file.info.st_dev || info.st_ino != file.info.st_ino) {
    return fail(ErrorCode::file_changed,
                fmt::format("File was replaced during the call: {}", displayed_path(file.path)));
  }
  return place;
}

Result<Fd> FileSpace::make_directories(const std::string& way, const std::string& path) const {
  Fd directory = open_way(m_directory.get(), way, O_RDONLY | O_DIRECTORY);
  if (directory || errno != ENOENT) {
    return directory ? Result<Fd>(std::move(directory)) : fail(file_error(path, errno));
  }
  const auto [parent, name] = split_path(way);
  if (name.empty() || name == ".." || parent.size() >= way.size()) {
    return fail(file_error(path, ENOENT));
  }
  auto above = make_directories(parent, path);
  if (!above) {
    return above;
  }
  if (::mkdirat(above->get(), name.c_str(), k_directory_mode) != 0 && errno != EEXIST) {
    return fail(file_error(path, errno));
  }
  directory = open_way(above->get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return directory ? Result<Fd>(std::move(directory)) : fail(file_error(path, errno));
}

Result<FilePlace> FileSpace::place_for(const std::string& path, bool may_make_directories) const {
  const auto way = beneath(path);
  if (!way) {
    return fail(way.error());
  }
  if (path.back() == '/' || path.ends_with("/.") || path.ends_with("/..")) {
    return fail(ErrorCode::is_a_directory, fmt::format("Is a directory: {}", displayed_path(path)));
  }
  auto [parent, name] = split_path(*way);
  Result<Fd> directory = open_way(m_directory.get(), parent, O_RDONLY | O_DIRECTORY);
  if (!*directory) {
    directory =
        may_make_directories && errno == ENOENT ? make_directories(parent, path) : fail(file_error(path, errno));
  }
  if (!directory) {
    return fail(directory.error());
  }
  auto folder = real_path(*directory);
  if (!folder) {
    return fail(folder.error());
  }
  struct stat info {};
  if (::fstatat(directory->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
    return fail(ErrorCode::dangling_link, dangling_message(path));
  }
  return FilePlace{std::move(*directory), name, (*folder == "/" ? "" : *folder) + "/" + name};
}

}  // namespace dockbridge::agent
