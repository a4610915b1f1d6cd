#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "agent/session/event_loop.hpp"
#include "agent/session/replies.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/frame.hpp"
#include "wire/operation.hpp"
#include "wire/route.hpp"

namespace dockbridge::agent {

/// A request that is sent on to a worker as it was received.
struct FileRequest {
  std::uint64_t id = 0;
  wire::Operation operation = wire::Operation::file_read;
  std::string staging{};  ///< token of the upload or copy that it belongs to; empty if none
  wire::RawFrame frame;

  [[nodiscard]] const wire::OperationProperties& properties() const { return wire::properties_of(operation); }
};

/// Passes file requests to separate processes. These may block, use much processor time, or crash, and the session
/// continues. A cancelled search or copy is killed with its process. A few idle processes are kept. Each receives the
/// frames of the stream and has one request at a time.
class FileWorkers {
 public:
  FileWorkers(EventLoop& loop, std::string state_path, Replies& replies)
      : m_loop(loop), m_state_path(std::move(state_path)), m_replies(replies) {}
  /// Stops searches and copies, whose results are no longer needed. A change that has begun is completed.
  ~FileWorkers();
  FileWorkers(const FileWorkers&) = delete;
  FileWorkers& operator=(const FileWorkers&) = delete;

  /// The request gets a reply, unless it is cancelled.
  void submit(FileRequest request);
  void cancel(std::uint64_t request);
  /// Has a worker undo the unfinished changes of killed workers, now and whenever a worker dies. `state_fd` must
  /// outlive this object.
  void recover(int state_fd);

 private:
  struct Worker {
    Fd socket;
    Fd process;  ///< a pidfd, to kill it with
    wire::FrameReader reader{wire::k_max_body_to_host};
    std::string outgoing{};
    std::optional<std::uint64_t> request{};
    wire::ServedBy kind = wire::ServedBy::worker;  ///< of the request
    bool is_killable = false;   ///< the request changes nothing, so its worker can be killed at any time
    std::string staging{};      ///< token of the upload or copy that this worker is reserved for; empty if none
    bool is_abandoned = false;  ///< its upload or copy was abandoned during a request
  };
  using Position = std::list<Worker>::iterator;

  [[nodiscard]] bool may_start(const FileRequest& request) const;
  void start(FileRequest request);
  void start_waiting();
  /// Recovers after the death of a worker during a change. The next request must not see the unfinished change.
  void recover_from_crash(const Worker& dead);
  /// If a change is unfinished, starts a worker, which recovers before it serves requests.
  void recover_leftovers();
  /// Recovers, and checks again later while a process of an earlier session may still leave a change unfinished.
  void check_leftovers();
  void abandon(FileRequest request);
  Position find_for(const std::string& staging);
  Position launch();
  void write_to(Position worker);
  void read_from(int fd);
  void finish(Position worker, const wire::RawFrame& frame, const wire::Route& route);
  static void kill(const Worker& worker);
  void drop(Position worker);

  int m_state_fd = -1;  ///< set by `recover`
  Fd m_timer;           ///< for the next `check_leftovers`
  milliseconds m_check_interval{0};
  EventLoop& m_loop;
  std::string m_state_path;
  Replies& m_replies;
  std::list<Worker> m_workers;
  std::deque<FileRequest> m_waiting;
  std::size_t m_waiting_bytes = 0;
};

}  // namespace dockbridge::agent
