#include "util/path_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "util/file.hpp"
#include "util/path_components.hpp"

namespace dockbridge {

namespace {

constexpr std::size_t k_max_depth = 256;

struct Step {
  Fd directory;
  FileIdentity identity;
  std::string path;  ///< without a final slash; empty for the root
};

std::vector<FileIdentity> identities_of(const std::vector<Step>& steps) {
  std::vector<FileIdentity> identities;
  identities.reserve(steps.size());
  for (const Step& step : steps) {
    identities.push_back(step.identity);
  }
  return identities;
}

}  // namespace

Result<PathWalk> PathWalk::to(const std::string& path) {
  const auto failed = [&](int number) {
    errno = number;
    return fail(errno_error(path));
  };
  struct stat info {};
  Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (path.find('\0') != std::string::npos || !path.starts_with('/')) {
    return failed(EINVAL);
  }
  if (!root || ::fstat(root.get(), &info) != 0) {
    return failed(errno);
  }
  PathWalk walk;
  std::vector<Step> steps;
  steps.push_back({std::move(root), {info.st_dev, info.st_ino}, ""});
  std::vector<std::string> pending;
  push_path_components(path, pending);
  bool ends_at_file = false;
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (ends_at_file) {
      return failed(ENOTDIR);
    }
    if (name == "..") {
      // Return to the directory that the walk came through. Its actual parent may have changed since.
      if (steps.size() > 1) {
        steps.pop_back();
      }
      continue;
    }
    Fd next(::openat(steps.back().directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next || ::fstat(next.get(), &info) != 0) {
      return failed(errno);
    }
    const std::string reached = steps.back().path + "/" + name;
    if (!S_ISLNK(info.st_mode)) {
      if (steps.size() >= k_max_depth) {
        return failed(ENAMETOOLONG);
      }
      ends_at_file = !S_ISDIR(info.st_mode);
      steps.push_back({std::move(next), {info.st_dev, info.st_ino}, reached});
      continue;
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size());
    if (length <= 0) {
      return failed(length < 0 ? errno : ENOENT);
    }
    walk.m_links.push_back({reached, identities_of(steps)});
    if (walk.m_links.size() > k_max_links) {
      return failed(ELOOP);
    }
    const std::string_view leads_to(target.data(), static_cast<std::size_t>(length));
    if (leads_to.front() == '/') {
      steps.erase(steps.begin() + 1, steps.end());
    }
    push_path_components(leads_to, pending);
  }
  if (ends_at_file && path.ends_with('/')) {
    return failed(ENOTDIR);
  }
  walk.m_identity = steps.back().identity;
  walk.m_is_directory = !ends_at_file;
  walk.m_end = {steps.back().path + "/", identities_of(steps)};
  walk.m_fd = std::move(steps.back().directory);
  return walk;
}

bool PathWalk::is_inside(const Position& position, const std::vector<std::string>& directories) {
  return std::any_of(directories.begin(), directories.end(), [&](std::string directory) {
    struct stat info {};
    // Compare by identity, because a directory can have several paths.
    if (::stat(directory.c_str(), &info) == 0 &&
        std::find(position.above.begin(), position.above.end(), FileIdentity{info.st_dev, info.st_ino}) !=
            position.above.end()) {
      return true;
    }
    // Compare by name too, because this user may lack the permission to stat it.
    directory.resize(directory.find_last_not_of('/') + 1);
    return position.path.starts_with(directory + "/");
  });
}

std::optional<std::string> PathWalk::link_inside(const std::vector<std::string>& directories) const {
  const auto found =
      std::find_if(m_links.begin(), m_links.end(), [&](const Position& link) { return is_inside(link, directories); });
  return found != m_links.end() ? std::optional(found->path) : std::nullopt;
}

bool PathWalk::depends_on(const std::vector<std::string>& directories) const {
  return is_inside(m_end, directories) || link_inside(directories);
}

}  // namespace dockbridge
