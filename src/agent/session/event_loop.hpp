#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "agent/session/frozen_time.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Waits for descriptors with one epoll, in one thread. Callbacks may add and remove descriptors, even their own.
class EventLoop {
 public:
  using Callback = std::function<void(std::uint32_t events)>;

  EventLoop();
  /// Borrows `fd`, which must be removed before it is closed.
  void add(int fd, std::uint32_t events, Callback callback);
  void change(int fd, std::uint32_t events);
  void remove(int fd);

  /// Waits for events and runs their callbacks. A negative timeout means no limit. Returns false after the timeout.
  bool run_once(milliseconds timeout);
  /// Frozen time that the waits have revealed. It is updated before callbacks run.
  [[nodiscard]] const FrozenTime& frozen() const { return m_frozen; }

 private:
  struct Entry {
    std::uint64_t serial;
    Callback callback;
  };
  Fd m_epoll;
  FrozenTime m_frozen;
  std::map<int, Entry> m_entries;
  std::uint64_t m_next_serial = 1;
};

}  // namespace dockbridge::agent
