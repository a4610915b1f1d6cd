#include "agent/session/ports.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>

#include "agent/as_user_of.hpp"
#include "agent/process_tree.hpp"
#include "agent/record.hpp"
#include "agent/session/survivors.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_command_bytes = 200;
constexpr std::size_t k_max_command_line = 64 * 1024;

/// The links under /proc/PID/fd of the sockets that listen on the port, such as "socket:[1234]".
std::set<std::string> listening_sockets(std::uint16_t port) {
  constexpr unsigned k_listens = 0x0A;
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      unsigned local = 0;
      unsigned state = 0;
      unsigned long inode = 0;
      // "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 ..."
      const bool parsed =
          std::sscanf(line.c_str(),
                      " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*[0-9A-Fa-f:] %*[0-9A-Fa-f:] %*x %*u %*u %lu",
                      &local, &state, &inode) == 3;
      if (parsed && local == port && state == k_listens) {
        sockets.insert(fmt::format("socket:[{}]", inode));
      }
    }
  }
  return sockets;
}

bool has_one_open(pid_t pid, const std::set<std::string>& files) {
  const AsUserOf identity(pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(fmt::format("/proc/{}/fd", pid).c_str()), ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    std::array<char, 64> target{};
    const ssize_t length = ::readlinkat(::dirfd(directory.get()), item->d_name, target.data(), target.size());
    if (length > 0 && files.contains(std::string(target.data(), static_cast<std::size_t>(length)))) {
      return true;
    }
  }
  return false;
}

std::string command_of(pid_t pid) {
  auto line = read_file_at(AT_FDCWD, fmt::format("/proc/{}/cmdline", pid), k_max_command_line).value_or("");
  std::replace(line.begin(), line.end(), '\0', ' ');
  line.erase(line.find_last_not_of(' ') + 1);
  return utf8_prefix(line, k_max_command_bytes);
}

}  // namespace

bool is_port_open(std::uint16_t port) {
  return !listening_sockets(port).empty();
}

PortOwner find_listener(std::uint16_t port, const std::string& process) {
  const auto sockets = listening_sockets(port);
  const auto all = all_processes();
  PortOwner found;
  for (const ProcessEntry& entry : all) {
    if (entry.is_dead() || !has_one_open(entry.pid, sockets)) {
      continue;
    }
    PortOwner listener{entry.pid, command_of(entry.pid), process_of(entry.pid, all)};
    if (listener.process == process) {
      return listener;
    }
    // The first one in the list: a server rather than one of its workers, which follow it.
    if (found.pid == 0) {
      found = std::move(listener);
    }
  }
  return found;
}

}  // namespace dockbridge::agent
