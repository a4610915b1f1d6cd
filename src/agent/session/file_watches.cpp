#include "agent/session/file_watches.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "agent/files/file_space.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_watches = 256;
constexpr std::uint32_t k_watched_events = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO |
                                           IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

std::int64_t modified_ms(const FilePlace& place) {
  struct stat info {};
  return ::fstatat(place.directory.get(), place.name.c_str(), &info, 0) == 0 ? file_milliseconds(info.st_mtim) : 0;
}

}  // namespace

Result<void> FileWatches::add(std::uint64_t request, const wire::WatchRequest& message, Clock::time_point now) {
  const std::string& path = message.path;
  if (m_watches.size() >= k_max_watches) {
    return fail(ErrorCode::agent_busy, "Too many files are watched");
  }
  const auto space = FileSpace::open(message.root);
  const auto file = space ? space->find(path) : fail(space.error());
  const auto place = file ? space->place_of(*file) : space ? space->place_for(path, false) : fail(space.error());
  if (!place) {
    return fail(place.error());
  }
  if (!m_inotify) {
    m_inotify.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    m_loop.add(m_inotify.get(), EPOLLIN, [this](std::uint32_t) { receive(); });
  }
  const std::string directory = fmt::format("/proc/self/fd/{}", place->directory.get());
  const int descriptor = ::inotify_add_watch(m_inotify.get(), directory.c_str(), k_watched_events | IN_ONLYDIR);
  if (descriptor < 0) {
    return fail(file_error(path, errno));
  }
  m_watches.push_back({request, descriptor, place->name, now + message.timeout});
  if (modified_ms(*place) != message.modified_at_ms) {
    reply(std::prev(m_watches.end()), true);
  }
  return {};
}

void FileWatches::receive() {
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  const ssize_t got = ::read(m_inotify.get(), buffer.data(), buffer.size());
  std::vector<std::uint64_t> changed;
  for (ssize_t at = 0; at < got;) {
    inotify_event event{};
    std::memcpy(&event, buffer.data() + at, sizeof event);
    const char* name = event.len > 0 ? buffer.data() + at + sizeof event : "";
    for (const Watch& watch : m_watches) {
      // An event without a name is about the directory itself. After an overflow of the queue, any file may have
      // changed.
      if (event.wd < 0 || (watch.descriptor == event.wd && (*name == '\0' || watch.name == name))) {
        changed.push_back(watch.request);
      }
    }
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  for (const std::uint64_t request : changed) {
    const auto watch =
        std::find_if(m_watches.begin(), m_watches.end(), [&](const Watch& it) { return it.request == request; });
    if (watch != m_watches.end()) {
      reply(watch, true);
    }
  }
}

void FileWatches::reply(std::list<Watch>::iterator watch, bool has_changed) {
  const std::uint64_t request = watch->request;
  remove(watch);
  m_replies.send(request, wire::WatchAnswer{has_changed});
}

/// Removes the kernel's watch with the last file of its directory.
void FileWatches::remove(std::list<Watch>::iterator watch) {
  const int descriptor = watch->descriptor;
  m_watches.erase(watch);
  if (std::none_of(m_watches.begin(), m_watches.end(), [&](const Watch& it) { return it.descriptor == descriptor; })) {
    ::inotify_rm_watch(m_inotify.get(), descriptor);
  }
}

void FileWatches::cancel(std::uint64_t request) {
  const auto watch =
      std::find_if(m_watches.begin(), m_watches.end(), [&](const Watch& it) { return it.request == request; });
  if (watch != m_watches.end()) {
    remove(watch);
  }
}

void FileWatches::check(Clock::time_point now) {
  for (auto watch = m_watches.begin(); watch != m_watches.end();) {
    const auto current = watch++;
    if (now >= current->deadline) {
      reply(current, false);
    }
  }
}

std::optional<Clock::time_point> FileWatches::next_check() const {
  const auto first = std::min_element(m_watches.begin(), m_watches.end(),
                                      [](const Watch& a, const Watch& b) { return a.deadline < b.deadline; });
  return first == m_watches.end() ? std::nullopt : std::optional(first->deadline);
}

}  // namespace dockbridge::agent
