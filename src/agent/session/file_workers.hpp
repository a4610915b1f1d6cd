#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>

#include "agent/session/event_loop.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

/// Hands the requests about files to processes of their own, which may block, use much processor time, or crash, while
/// the session goes on; a request that is cancelled ends with its process. A few of them wait for the next request.
/// Each speaks the frames of the stream and has one request at a time.
class FileWorkers {
 public:
  /// What a worker has to say, a refusal included, to be sent on as it is.
  using Answer = std::function<void(const wire::Frame& frame)>;

  FileWorkers(EventLoop& loop, std::string state_path, Answer answer);
  /// Stops searches and copies, whose results are no longer needed. A change that has begun is finished.
  ~FileWorkers();
  FileWorkers(const FileWorkers&) = delete;
  FileWorkers& operator=(const FileWorkers&) = delete;

  /// Answered sooner or later, but for what is cancelled.
  void submit(std::uint64_t request, const wire::Frame& frame);
  void cancel(std::uint64_t request);
  /// Sees to it that what a killed predecessor left half done is tidied up, now and when a worker dies. `state_fd` has
  /// to outlive this.
  void recover(int state_fd);

 private:
  /// What a request takes: a search all cores, a decoder much memory.
  enum class Kind { quick, search, decoding };

  struct Worker {
    Fd socket;
    Fd process;  ///< a pidfd, for ending it
    wire::FrameReader reader{wire::k_max_body_to_host};
    std::string outgoing{};
    std::optional<std::uint64_t> request{};
    Kind kind = Kind::quick;
    bool is_killable = false;
    std::string staging{};      ///< token of the upload or copy that this worker is reserved for; empty if none
    bool is_abandoned = false;  ///< its upload or copy was given up while it worked on a request
  };
  struct Waiting {
    std::uint64_t request;
    wire::Frame frame;
  };
  using Position = std::list<Worker>::iterator;

  static Kind kind_of(const wire::Frame& frame);
  /// Whether a request may take long and changes nothing. Its worker can be killed at any time.
  static bool is_killable(const wire::Frame& frame);
  [[nodiscard]] bool may_start(const wire::Frame& frame) const;
  void start(std::uint64_t request, const wire::Frame& frame);
  void start_waiting();
  /// A worker died during a change: the next request must not see what it left half done.
  void recover_from_crash(const Worker& dead);
  /// Starts a worker, which recovers first, if something was left half done.
  void recover_leftovers();
  /// Looks again later while a process of an earlier session may still leave something half done.
  void look_again();
  void abandon(std::uint64_t request, const wire::Frame& frame);
  Position find_for(const wire::Frame& frame);
  Position launch();
  void write_to(Position worker);
  void read_from(int fd);
  void finish(Position worker, const wire::Frame& frame);
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
  std::deque<Waiting> m_waiting;
  std::size_t m_waiting_bytes = 0;
};

}  // namespace dockbridge::agent
