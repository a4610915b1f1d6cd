#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "util/fd.hpp"

namespace dockbridge {

/// Wakes a thread that polls a descriptor. Any thread may call `wake`. Calls before a `reset` count as one.
class Wakeup {
 public:
  Wakeup() : m_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(m_fd.get(), &one, sizeof one);
  }
  /// Clears earlier calls of `wake`.
  void reset() const {
    std::uint64_t count = 0;
    (void)!::read(m_fd.get(), &count, sizeof count);
  }
  [[nodiscard]] int fd() const { return m_fd.get(); }

 private:
  Fd m_fd;
};

}  // namespace dockbridge
