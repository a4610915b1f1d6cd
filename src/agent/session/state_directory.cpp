#include "agent/session/state_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "agent/session/keeper_link.hpp"
#include "util/file.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

namespace {

/// Opens `path` as a directory that belongs to this user alone, making it if need be.
Result<Fd> open_private_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errno_error(path));
  }
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return fail(errno_error(path));
  }
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return fail("unsafe_directory", path + ": exists, but belongs to someone else");
  }
  if (::faccessat(fd.get(), ".", W_OK, AT_EACCESS) != 0) {
    return fail(errno_error(path));
  }
  return fd;
}

std::vector<std::string> names_in(int directory_fd) {
  std::vector<std::string> names;
  const int copy = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(copy >= 0 ? ::fdopendir(copy) : nullptr, ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    names.emplace_back(item->d_name);
  }
  return names;
}

}  // namespace

Result<StateDirectory> StateDirectory::open() {
  const std::string uid = std::to_string(::geteuid());
  std::string failures;
  for (const std::string& path : {"/var/lib/dockbridge/state/" + uid, "/tmp/.dockbridge-" + uid,
                                  "/run/.dockbridge-" + uid, "/dev/shm/.dockbridge-" + uid}) {
    auto fd = open_private_directory(path);
    if (fd) {
      StateDirectory directory;
      directory.m_path = path;
      directory.m_fd = std::move(*fd);
      return directory;
    }
    failures += (failures.empty() ? "" : "; ") + fd.error().message;
  }
  return fail("no_state_directory", "no place in the container can be written: " + failures,
              "Give the container a writable /tmp, for example with --tmpfs /tmp");
}

Result<Fd> StateDirectory::create(const std::string& process) const {
  if (::mkdirat(m_fd.get(), process.c_str(), 0700) != 0) {
    if (errno == EEXIST) {
      return fail("process_exists", "a process with this id exists already");
    }
    return fail("state_not_writable", errno_error("cannot store a process in " + m_path).message,
                "Free some disk space in the container");
  }
  return open_process(process);
}

Result<Fd> StateDirectory::open_process(const std::string& process) const {
  Fd fd(::openat(m_fd.get(), process.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    return fail("no_such_process", "there is no process " + process,
                "It may have expired; check_process without a processId lists those that can be read");
  }
  return fd;
}

void StateDirectory::remove(const std::string& process) const {
  {
    const auto fd = open_process(process);
    if (!fd) {
      return;
    }
    for (const std::string& name : names_in(fd->get())) {
      ::unlinkat(fd->get(), name.c_str(), 0);
    }
  }
  ::unlinkat(m_fd.get(), process.c_str(), AT_REMOVEDIR);
}

std::vector<std::string> StateDirectory::processes() const {
  std::vector<std::string> ids = names_in(m_fd.get());
  ids.erase(std::remove_if(ids.begin(), ids.end(), [](const auto& name) { return !wire::is_process_id(name); }),
            ids.end());
  return ids;
}

void StateDirectory::prune(const Retention& retention) const {
  const Fd lock(::openat(m_fd.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return;
  }
  struct Finished {
    std::time_t when;
    std::string id;
  };
  std::vector<Finished> finished;
  for (std::string& id : processes()) {
    struct stat info {};
    const bool ended = ::fstatat(m_fd.get(), (id + "/status").c_str(), &info, 0) == 0;
    if (!ended && ::fstatat(m_fd.get(), id.c_str(), &info, 0) != 0) {
      continue;
    }
    // A folder without a status is a process that runs, or one whose keeper died; the socket tells.
    const bool has_socket = ::faccessat(m_fd.get(), (id + "/ctl").c_str(), F_OK, 0) == 0;
    if (has_socket || !ended) {
      const auto fd = open_process(id);
      if (!fd) {
        continue;
      }
      if (const auto link = KeeperLink::connect(fd->get()); link || link.error().code != k_keeper_gone) {
        continue;
      }
    }
    finished.push_back({info.st_mtime, std::move(id)});
  }
  std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.when > b.when; });
  const std::time_t oldest = std::time(nullptr) - retention.age.count();
  for (std::size_t i = 0; i < finished.size(); ++i) {
    if (i >= retention.count || finished[i].when < oldest) {
      remove(finished[i].id);
    }
  }
}

}  // namespace dockbridge::agent
