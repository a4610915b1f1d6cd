#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "agent/session/event_loop.hpp"
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

/// Hands the requests about files to processes of their own, which may block, use much processor time, or crash, while
/// the session goes on; a request that is cancelled ends with its process. A few of them wait for the next request.
/// Each speaks the frames of the stream and has one request at a time.
class FileWorkers {
 public:
  /// Receives the bytes of an answer's frame, to be sent on as they are.
  using Answer = std::function<void(std::string_view frame)>;

  FileWorkers(EventLoop& loop, std::string state_path, Answer answer);
  /// Stops searches and copies, whose results are no longer needed. A change that has begun is finished.
  ~FileWorkers();
  FileWorkers(const FileWorkers&) = delete;
  FileWorkers& operator=(const FileWorkers&) = delete;

  /// Answered sooner or later, but for what is cancelled.
  void submit(FileRequest request);
  void cancel(std::uint64_t request);
  /// Sees to it that what a killed predecessor left half done is tidied up, now and when a worker dies. `state_fd` has
  /// to outlive this.
  void recover(int state_fd);

 private:
  struct Worker {
    Fd socket;
    Fd process;  ///< a pidfd, for ending it
    wire::FrameReader reader{wire::k_max_body_to_host};
    std::string outgoing{};
    std::optional<std::uint64_t> request{};
    wire::Server kind = wire::Server::worker;  ///< of the request
    bool is_killable = false;                  ///< the request changes nothing, so its worker can be killed at any time
    std::string staging{};      ///< token of the upload or copy that this worker is reserved for; empty if none
    bool is_abandoned = false;  ///< its upload or copy was given up while it worked on a request
  };
  using Position = std::list<Worker>::iterator;

  [[nodiscard]] bool may_start(const FileRequest& request) const;
  void start(FileRequest request);
  void start_waiting();
  /// A worker died during a change: the next request must not see what it left half done.
  void recover_from_crash(const Worker& dead);
  /// Starts a worker, which recovers first, if something was left half done.
  void recover_leftovers();
  /// Looks again later while a process of an earlier session may still leave something half done.
  void look_again();
  void abandon(FileRequest request);
  Position find_for(const std::string& staging);
  Position launch();
  void write_to(Position worker);
  void read_from(int fd);
  void finish(Position worker, const wire::RawFrame& frame, const wire::Route& route);
  static void kill(const Worker& worker);
  void drop(Position worker);
  void refuse(std::uint64_t request, const Error& error);

  int m_state_fd = -1;  ///< known when `recover` was called
  Fd m_timer;           ///< runs while `look_again` has to
  milliseconds m_look_interval{0};
  EventLoop& m_loop;
  std::string m_state_path;
  Answer m_answer;
  std::list<Worker> m_workers;
  std::deque<FileRequest> m_waiting;
  std::size_t m_waiting_bytes = 0;
};

}  // namespace dockbridge::agent
