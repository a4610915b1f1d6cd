#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/session/event_loop.hpp"
#include "agent/session/file_watches.hpp"
#include "agent/session/file_workers.hpp"
#include "agent/session/keeper_pool.hpp"
#include "agent/session/output_grep.hpp"
#include "agent/session/pattern_watch.hpp"
#include "agent/session/process.hpp"
#include "agent/session/process_numbers.hpp"
#include "agent/session/silence.hpp"
#include "agent/session/state_directory.hpp"
#include "util/clock.hpp"
#include "wire/fields.hpp"
#include "wire/frame.hpp"
#include "wire/input_messages.hpp"
#include "wire/operation.hpp"
#include "wire/output_messages.hpp"
#include "wire/route.hpp"
#include "wire/session_messages.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::agent {

/// What one connection from the host runs in the container: reads requests from stdin, answers on stdout, gives
/// processes to keepers and reads their spools. Holds no state that matters: it may die at any moment, and another
/// takes over. One thread.
class Session {
 public:
  Session(StateDirectory state, wire::Retention retention);
  /// Returns when the stream ends, breaks the protocol, or has been silent for too long.
  int run();

 private:
  /// A request that was received but not handled yet.
  struct PendingRequest {
    wire::Route route;
    wire::RawFrame frame;
  };

  /// A request that is answered when its process ends, its output grows past what is known, or time is up.
  struct Waiter {
    std::uint64_t request = 0;
    std::string process;
    Clock::time_point deadline;
    std::uint64_t carry = 0;

    // What it waits for, beside the end.
    std::optional<wire::Offsets> known;  ///< more output than this
    std::optional<PatternWatch> pattern;
    std::optional<std::uint16_t> port;
    std::optional<SilenceLimit> idle;
    bool input = false;
    bool answer = false;  ///< it has answered its latest input, as StatePacket::answered says
    bool closed = false;  ///< not only the command's end, but that of everything it started

    Clock::time_point next_port_check;
    Clock::time_point earliest_foreign_port;  ///< a port of another process is not reported before
    Clock::time_point next_idle_check;
    bool is_behind = false;                     ///< there is output that the pattern was not held against yet
    std::optional<wire::WaitOutcome> happened;  ///< to be answered as soon as the keeper has told the latest state
    /// With several processes: set when the request has been answered, and shared by its waiters. Null: just this one.
    std::shared_ptr<bool> answered;

    [[nodiscard]] Clock::time_point next_check() const;
    [[nodiscard]] bool is_answered() const { return answered && *answered; }
    /// What the keeper is to watch for: k_watch_input, k_watch_answer.
    [[nodiscard]] std::uint32_t watched() const { return (input ? k_watch_input : 0) | (answer ? k_watch_answer : 0); }
  };

  /// A search that goes on a piece at a time, between other requests.
  struct Grep {
    std::uint64_t request = 0;
    std::string process;
    OutputGrep search;
  };

  // session.cpp: the stream
  void greet();
  void read_requests();
  /// Splits the input into requests and drops requests whose cancellation is already in the input.
  Result<void> queue_requests();
  void handle_requests();
  void on_writable();
  void handle(PendingRequest pending);
  /// Runs an operation that the session serves itself.
  Result<void> serve(std::uint64_t request, wire::Operation operation, const wire::Field& head, std::string_view body);
  Result<void> line(std::uint64_t request, const wire::LineRequest& message);
  void cancel(std::uint64_t request);
  Result<void> watch_file(std::uint64_t request, const wire::WatchRequest& message);
  void answer(std::uint64_t request, nlohmann::json head, std::string_view body = {});
  void refuse(std::uint64_t request, const Error& error);
  void flush();
  [[nodiscard]] milliseconds next_timeout() const;
  void tidy_up(Clock::time_point now);

  // start.cpp
  Result<void> start(std::uint64_t request, const wire::StartRequest& message);

  // waiting.cpp
  /// Error `bad_pattern`.
  static Result<Waiter> make_waiter(std::uint64_t request, const std::string& process, const wire::WaitTerms& terms);
  Result<void> wait(std::uint64_t request, const wire::WaitRequest& message);
  Result<void> wait_for(Waiter waiter);
  /// Answered with the first of several processes for which the wait is over.
  Result<void> wait_for_any(std::uint64_t request, const wire::WaitRequest& message);
  Result<std::optional<wire::WaitOutcome>> happened_to(Waiter& waiter, const Process& process);
  /// Answers those whose event has come; to be called at every news of the process. Without news, only those whose
  /// search goes on.
  void serve_waiters(Process& process, bool is_news = true);
  /// What time brings: deadlines, ports, silence, output that is still to be searched.
  void check_waiters();
  void conclude(Waiter& waiter, wire::WaitOutcome what);
  void check_port(Waiter& waiter, Clock::time_point now);
  /// nullopt if nothing listens on the port.
  [[nodiscard]] std::optional<wire::Listener> describe_listener(std::uint16_t port, const Process& process) const;
  /// Drops only the request; the process keeps running.
  void cancel_wait(std::uint64_t request);
  void ask_keeper(const std::string& process);
  void answer_wait(const Waiter& waiter, const Process& process, wire::WaitOutcome happened);
  void refuse_wait(const Waiter& waiter, const Error& error);
  /// Once its keeper is gone and nobody waits for it.
  void forget_if_done(const std::string& id);

  // once.cpp: what is done once under an idempotency key
  /// Answers a start whose process is there as a wait for that.
  Result<void> join(std::uint64_t request, const std::string& id, const wire::StartRequest& message);
  /// An order to the keeper, without its payload.
  static OnceHeader header_of(const wire::Once& once, Order order);
  Result<void> taken(std::uint64_t request, const wire::TakenRequest& message);
  void answer_once(std::uint64_t request, std::uint32_t accepted, const OnceAnswer& found);

  // operations.cpp: what the other requests do
  Result<void> read(std::uint64_t request, const wire::ReadRequest& message);
  Result<void> input(std::uint64_t request, const wire::InputRequest& message);
  Result<void> signal(std::uint64_t request, const wire::SignalRequest& message);
  Result<void> end(std::uint64_t request, const wire::EndRequest& message);
  /// What is left of a process whose keeper was killed can still be signalled.
  Result<void> reach_survivors(std::uint64_t request, const std::string& process, int signal, const Error& otherwise);
  Result<void> keys(std::uint64_t request, const wire::KeysRequest& message);
  Result<void> resize(std::uint64_t request, const wire::ResizeRequest& message);
  Result<void> screen(std::uint64_t request, const wire::ScreenRequest& message);
  void answer_screen(std::uint64_t request, const std::string& id);
  Result<void> grep(std::uint64_t request, const wire::GrepRequest& message);
  void advance_greps();
  void list(std::uint64_t request, const wire::ListRequest& message);

  /// The id of the process that has `number` among the processes of `owner`.
  Result<std::string> numbered_process(const std::string& owner, std::uint64_t number);
  /// The process, with a link to its keeper if that still lives.
  Result<Process*> find(const std::string& id);
  /// Error `process_ended` if it has no keeper.
  Result<Process*> find_live(const std::string& id);
  void attach(Process& process, KeeperLink link);
  void on_keeper(const std::string& id);
  /// Returns false if the peer violates the protocol.
  bool on_keeper_packet(Process& process, const ControlPacket& packet);
  void leave_out_frozen_time(StatePacket& state) const;
  void on_start_failed(std::string id, std::string_view reason);
  void take_back_keeper(std::string id);
  /// The link, if there was one; it is no longer listened to.
  std::optional<KeeperLink> detach(Process& process);

  StateDirectory m_state;
  wire::Retention m_retention;
  ProcessNumbers m_numbers{m_state.fd()};
  EventLoop m_loop;
  KeeperPool m_keepers{m_state.path()};
  FileWorkers m_files;
  FileWatches m_watches;
  std::string m_shell;
  wire::FrameReader m_reader{wire::k_max_body_to_agent};
  std::deque<PendingRequest> m_requests;
  std::string m_outgoing;
  std::array<Fd, 2> m_engine_streams;  // once there is a direct line
  bool m_stdout_watched = false;
  bool m_done = false;
  Clock::time_point m_last_heard;
  Clock::time_point m_next_prune;
  Clock::time_point m_next_size_check;
  int m_started_since_prune = 0;
  std::map<std::string, std::unique_ptr<Process>> m_processes;
  std::vector<Waiter> m_waiters;
  std::vector<Grep> m_greps;
};

}  // namespace dockbridge::agent
