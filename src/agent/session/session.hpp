#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "agent/session/event_loop.hpp"
#include "agent/session/keeper_pool.hpp"
#include "agent/session/process.hpp"
#include "agent/session/state_directory.hpp"
#include "util/clock.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

/// What one connection from the host runs in the container: reads requests from stdin, answers on stdout, gives
/// processes to keepers and reads their spools. Holds no state that matters: it may die at any moment, and another
/// takes over. One thread.
class Session {
 public:
  explicit Session(StateDirectory state);
  /// Returns when the stream ends, breaks the protocol, or has been silent for too long.
  int run();

 private:
  /// A request that is answered when its process ends, its output grows past what is known, or time is up.
  struct Waiter {
    std::uint64_t request = 0;
    std::string process;
    Clock::time_point deadline;
    bool wants_growth = false;
    std::uint64_t known_out = 0;
    std::uint64_t known_err = 0;
    std::uint64_t carry = 0;
    bool expired = false;
  };

  // session.cpp: the stream
  void greet();
  void read_requests();
  void handle_requests();
  void on_writable();
  void handle(const wire::Frame& frame);
  void answer(std::uint64_t request, nlohmann::json head, std::string_view body = {});
  void refuse(std::uint64_t request, const Error& error);
  void flush();
  void expire_waiters();
  [[nodiscard]] milliseconds next_timeout() const;

  // start.cpp
  Result<void> start(std::uint64_t request, const wire::Frame& frame);

  // operations.cpp: what the other requests do
  Result<void> wait(std::uint64_t request, const wire::Frame& frame);
  Result<void> read(std::uint64_t request, const wire::Frame& frame);
  Result<void> input(std::uint64_t request, const wire::Frame& frame);
  Result<void> signal(std::uint64_t request, const wire::Frame& frame);
  Result<void> end(std::uint64_t request, const wire::Frame& frame);
  void list(std::uint64_t request);

  /// `process` of a request, checked before it becomes a file name.
  static Result<std::string> process_id_of(const nlohmann::json& head);
  static Waiter read_waiter(std::uint64_t request, const std::string& process, const nlohmann::json& head);
  /// The process, with a link to its keeper if that still lives.
  Result<Process*> find(const std::string& id);
  /// The same, but error `process_ended` if it has no keeper.
  Result<Process*> find_live(const std::string& id);
  void attach(Process& process, KeeperLink link);
  void on_keeper(const std::string& id);
  void on_keeper_packet(Process& process, const ControlPacket& packet);
  void on_start_failed(std::string id, std::string_view reason);
  void take_back_keeper(std::string id);
  /// The link, if there was one; it is no longer listened to.
  std::optional<KeeperLink> detach(Process& process);
  void serve_waiters(Process& process);
  void answer_wait(const Waiter& waiter, const Process& process);

  StateDirectory m_state;
  EventLoop m_loop;
  KeeperPool m_keepers{m_state.path()};
  std::string m_shell;
  wire::FrameReader m_reader{wire::k_max_body_to_agent};
  std::string m_outgoing;
  bool m_stdout_watched = false;
  bool m_done = false;
  Clock::time_point m_last_heard;
  Clock::time_point m_next_prune;
  int m_started_since_prune = 0;
  std::map<std::string, std::unique_ptr<Process>> m_processes;
  std::vector<Waiter> m_waiters;
};

}  // namespace dockbridge::agent
