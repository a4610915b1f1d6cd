#pragma once

#include <cstdint>
#include <functional>
#include <map>

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

 private:
  struct Entry {
    std::uint64_t serial;
    Callback callback;
  };
  Fd m_epoll;
  std::map<int, Entry> m_entries;
  std::uint64_t m_next_serial = 1;
};

}  // namespace dockbridge::agent
