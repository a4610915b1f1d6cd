#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "agent/session/frozen_time.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// One thread, one epoll. Callbacks may add and remove descriptors, their own included.
class EventLoop {
 public:
  using Callback = std::function<void(std::uint32_t events)>;

  EventLoop();
  /// Borrows `fd`: remove it before it is closed.
  void add(int fd, std::uint32_t events, Callback callback);
  void change(int fd, std::uint32_t events);
  void remove(int fd);

  /// Waits for events for at most `timeout` (negative: for ever) and runs their callbacks. False on time-out.
  bool run_once(milliseconds timeout);
  /// As far as its waits have shown it; callbacks are run after that is known.
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
