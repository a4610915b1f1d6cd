#include "agent/session/event_loop.hpp"

#include <sys/epoll.h>

#include <array>
#include <utility>
#include <vector>

namespace dockbridge::agent {

EventLoop::EventLoop() : m_epoll(::epoll_create1(EPOLL_CLOEXEC)) {}

void EventLoop::add(int fd, std::uint32_t events, Callback callback) {
  m_entries[fd] = {m_next_serial++, std::move(callback)};
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, fd, &event);
}

void EventLoop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(m_epoll.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd) {
  ::epoll_ctl(m_epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
  m_entries.erase(fd);
}

bool EventLoop::run_once(milliseconds timeout) {
  std::array<epoll_event, 64> events{};
  const auto began = Clock::now();
  const int count =
      ::epoll_wait(m_epoll.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(timeout.count()));
  if (timeout.count() >= 0) {
    m_frozen.note_wait(began, timeout, Clock::now());
  }
  // A callback may close a descriptor whose number the next one reuses. The serial distinguishes them.
  std::vector<std::pair<std::uint64_t, epoll_event>> ready;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    if (const auto found = m_entries.find(event.data.fd); found != m_entries.end()) {
      ready.emplace_back(found->second.serial, event);
    }
  }
  for (const auto& [serial, event] : ready) {
    const auto found = m_entries.find(event.data.fd);
    if (found != m_entries.end() && found->second.serial == serial) {
      const Callback callback = found->second.callback;
      callback(event.events);
    }
  }
  return count != 0;
}

}  // namespace dockbridge::agent
