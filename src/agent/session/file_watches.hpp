#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>

#include "agent/session/event_loop.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Requests that are answered when a file is changed, made or removed. The kernel tells of that by the name in its
/// directory, so a file may come and go meanwhile.
class FileWatches {
 public:
  /// Whether it was changed; false: the time is up.
  using Answer = std::function<void(std::uint64_t request, bool changed)>;

  FileWatches(EventLoop& loop, Answer answer);

  /// `known` is when the file was changed last, as far as the asker knows (0: there was none); if it is not so any
  /// more, that is answered at once.
  Result<void> add(std::uint64_t request, const std::string& root, const std::string& path, std::int64_t known_ms,
                   Clock::time_point deadline);
  void cancel(std::uint64_t request);
  /// Answers those whose time is up.
  void check();
  [[nodiscard]] std::optional<Clock::time_point> next_check() const;

 private:
  struct Watch {
    std::uint64_t request;
    int descriptor;  ///< of the directory
    std::string name;
    Clock::time_point deadline;
  };

  void hear();
  void finish(std::list<Watch>::iterator watch);

  Answer m_answer;
  EventLoop& m_loop;
  Fd m_inotify;  // made when it is first needed
  std::list<Watch> m_watches;
};

}  // namespace dockbridge::agent
