#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "agent/session/event_loop.hpp"
#include "agent/session/replies.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::agent {

/// Requests that wait until a file is changed, created or removed. The kernel reports names in a directory, so the file
/// may disappear and be created again.
class FileWatches {
 public:
  FileWatches(EventLoop& loop, Replies& replies) : m_loop(loop), m_replies(replies) {}

  /// Replies at once if the file has already changed since the time that the request names.
  Result<void> add(std::uint64_t request, const wire::WatchRequest& message, Clock::time_point now);
  void cancel(std::uint64_t request);
  /// Replies to the requests whose timeout has passed.
  void check(Clock::time_point now);
  [[nodiscard]] std::optional<Clock::time_point> next_check() const;

 private:
  struct Watch {
    std::uint64_t request;
    int descriptor;  ///< of the directory
    std::string name;
    Clock::time_point deadline;
  };

  void receive();
  void reply(std::list<Watch>::iterator watch, bool has_changed);
  void remove(std::list<Watch>::iterator watch);

  EventLoop& m_loop;
  Replies& m_replies;
  Fd m_inotify;  ///< created by the first request
  std::list<Watch> m_watches;
};

}  // namespace dockbridge::agent
