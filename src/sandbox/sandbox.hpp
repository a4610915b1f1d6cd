#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "sandbox/agent_launch.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/connection.hpp"
#include "sandbox/files.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "wire/input_messages.hpp"
#include "wire/output_messages.hpp"
#include "wire/process_state.hpp"
#include "wire/retention.hpp"
#include "wire/terminal.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::sandbox {

using wire::Listener;
using wire::Offsets;
using wire::Once;
using wire::Stream;
using wire::WaitCondition;
using StartRequest = wire::Command;
using Snapshot = wire::WaitAnswer;
using OutputSlice = wire::ReadAnswer;
using Screen = wire::ScreenAnswer;
using GrepRequest = wire::GrepQuery;
using GrepResult = wire::GrepAnswer;
using ProcessList = wire::ListAnswer;

/// Units that a process took.
struct Taken {
  std::size_t count = 0;           ///< bytes, keys or signals
  std::optional<Offsets> earlier;  ///< they were taken before, by a call that knew of so much output
};

/// Whether a request may connect to the container, and so start it.
enum class Connect { if_needed, never };

/// The host's view of one container. Connects when it is first used, reconnects after a loss, and starts nothing
/// twice. Any thread may call; calls run side by side. Every wait is bounded.
class Sandbox {
 public:
  struct Settings {
    std::string workdir = "/app";
    wire::Retention retention;
    std::string file_root{};               ///< the file tools stay beneath it; empty: no limit
    std::string trusted_runs_directory{};  ///< for `TrustedRuns`; empty: none
  };

  Sandbox(Channel& channel, Settings settings, Log& log);

  /// Connects if need be; the agent's greeting tells what there is.
  Result<Hello> hello(const std::stop_token& stop = {});
  /// The host directories that the container can write to. Connects if need be.
  Result<std::vector<std::string>> writable_mounts(const std::stop_token& stop);
  /// The greeting of the current connection; nullopt if there is no connection. Does not connect.
  [[nodiscard]] std::optional<Hello> present_hello();
  /// How many connections have taken the place of one that was lost.
  [[nodiscard]] std::uint64_t reconnections();
  /// Round-trip time of a ping to the agent. Does not connect.
  Result<Clock::duration> round_trip();
  [[nodiscard]] const std::string& workdir() const { return m_settings.workdir; }
  [[nodiscard]] std::string container_name() const { return m_channel.container_name(); }

  [[nodiscard]] Files& files() { return m_files; }
  /// Sends a request over the current connection without waiting for a reply. Does nothing if there is no connection.
  void post(nlohmann::json head);
  /// A request in the words of docs/agent-protocol.md. Not repeated after a loss.
  Result<wire::Frame> ask(nlohmann::json head, std::string_view body, milliseconds patience, const CallLimit& limit,
                          Connect may_connect = Connect::if_needed);
  /// The agent is not to be believed any more: the next call starts another.
  tl::unexpected<Error> drop_session(Error error);

  /// With the digest of an idempotency key, always the same one in a run of the container.
  Result<std::string> new_process_id(const std::stop_token& stop = {}, const std::optional<std::string>& key = {});
  /// Returns when the process has ended, something of `until` has happened, or `timeout` is over.
  Result<Snapshot> start(const StartRequest& request, milliseconds timeout, const WaitCondition& until,
                         const CallLimit& limit);
  Result<Snapshot> wait(const std::string& process, milliseconds timeout, const WaitCondition& until,
                        const CallLimit& limit);
  /// Waits for several processes at once, by their ids. Returns with the first for which the wait is over. A pattern is
  /// searched from the beginning of the output.
  Result<Snapshot> wait_for_any(const std::vector<std::string>& processes, milliseconds timeout,
                                const WaitCondition& until, const CallLimit& limit);
  /// Calls `on_end` once, soon after the process has ended; with `closed`, after everything that it started has. It is
  /// called by any thread and must not use the sandbox. Does not wait and does not connect. Returns the number of the
  /// connection, 0 if there is none: with that connection the watch is lost.
  std::uint64_t watch_end(const std::string& process, bool closed,
                          std::function<void(const wire::ProcessState& state)> on_end);
  /// The number of the current connection; 0 if there is none.
  [[nodiscard]] std::uint64_t connection_number();
  /// A process of the owner as it is now, by its id or its short id (`p3`). Another owner's is `no_such_process`.
  Result<Snapshot> find(const std::string& process, const std::string& owner, const CallLimit& limit);
  /// At most `max` bytes from `offset` on, in one piece; the slice tells where it starts and what is stored.
  Result<OutputSlice> read(const std::string& process, Stream stream, std::uint64_t offset, std::size_t max,
                           const CallLimit& limit);
  Result<GrepResult> grep(const std::string& process, const GrepRequest& request, const CallLimit& limit);
  /// All processes of an owner that run, and the latest finished ones, at most so many.
  Result<ProcessList> list(const std::string& owner, std::size_t most_finished, const CallLimit& limit,
                           Connect may_connect = Connect::if_needed);
  /// How many bytes the process has room for; fewer than given if it does not read its input. `as_paste`: on a
  /// terminal, marked as a paste if the program has asked for that.
  Result<Taken> send_input(const std::string& process, std::string_view bytes, bool then_end,
                           std::optional<Once> once = {}, const CallLimit& limit = {}, bool as_paste = false);
  /// Types keys (see wire/terminal.hpp) on its terminal. How many were taken: 0 if it has none.
  Result<Taken> press_keys(const std::string& process, const std::vector<std::string>& keys,
                           const std::optional<Once>& once = {}, const CallLimit& limit = {});
  /// How many units the process has taken under this key, if any; also after its end.
  Result<std::optional<Taken>> taken(const std::string& process, const Once& once, const CallLimit& limit = {});
  Result<Screen> screen(const std::string& process, const CallLimit& limit);
  Result<void> resize(const std::string& process, wire::TerminalSize size, const CallLimit& limit = {});
  /// To every process of the tree.
  Result<void> signal(const std::string& process, int number, const CallLimit& limit = {});
  Result<Taken> signal(const std::string& process, int number, const Once& once, const CallLimit& limit = {});
  /// TERM to the whole tree, KILL after `grace`.
  Result<void> end(const std::string& process, wire::Cause cause, milliseconds grace, const CallLimit& limit = {});

 private:
  struct Session {
    ContainerRun run;
    std::shared_ptr<Connection> connection;
  };

  /// A live connection, made if there is none. One caller makes it; those who come meanwhile share what becomes of it.
  Result<Session> session(const std::stop_token& stop, Connect may_connect = Connect::if_needed);
  Result<Session> connect(bool again);
  Result<wire::Frame> call(const Session& current, nlohmann::json head, std::string_view body, milliseconds patience,
                           const CallLimit& limit);
  /// What stands behind a connection that broke or fell silent.
  Error explain(const Session& session, const Error& error);
  /// After a loss: an error if the container is not in the same run any more. The engine may have said "running" for a
  /// moment after it was killed, and reconnecting then has started it again.
  Result<Session> expect_run(const ContainerRun& run, const std::stop_token& stop);
  void forget(const std::shared_ptr<Connection>& connection);
  /// Of a process that was lost: whether its container's run is over.
  void explain_loss(wire::ProcessState& state);
  static void explain_loss(wire::ProcessState& state, std::uint32_t generation);
  /// Of this process; of a start with a key also of one with the same key from another run of the container.
  Result<Snapshot> checked_snapshot(const wire::Frame& frame, const std::string& process, bool or_namesake = false);
  /// Sends a request about one process. After a lost connection it is sent again, if that has no second effect.
  template <typename Request>
  Result<wire::Frame> call_process(const Request& request, std::string_view body, milliseconds patience,
                                   const CallLimit& limit);
  Result<wire::Frame> call_process(const std::string& process, const nlohmann::json& head, std::string_view body,
                                   milliseconds patience, bool repeatable, const CallLimit& limit);
  /// The message in an answer. A malformed one ends the connection.
  template <typename Read>
  auto read_answer(const wire::Frame& answer, Read read);
  template <typename Message>
  Result<Message> read_answer(const wire::Frame& answer);
  // The highest number that a process of an owner has been seen with. It is told to the agent, because a state
  // directory in memory is lost when the container stops, and no number may come again.
  [[nodiscard]] std::uint64_t highest_number(const std::string& owner);
  void note_number(const wire::ProcessState& state);
  /// The error for a process that does not exist, or that belongs to another owner.
  Error unknown_process(const std::string& process, const CallLimit& limit);
  /// Sends a request about an existing process. After a lost connection it is sent again, if it is `repeatable`.
  Result<wire::Frame> call_again(const nlohmann::json& head, std::string_view body, milliseconds patience,
                                 bool repeatable, const CallLimit& limit);
  /// Sends at most `max` bytes, keys or signals to a process.
  template <typename Request>
  Result<Taken> give(const Request& request, std::string_view body, std::size_t max, const CallLimit& limit);
  /// Sends a request whose answer is empty.
  template <typename Request>
  Result<void> order(const Request& request, const CallLimit& limit);

  Channel& m_channel;
  Settings m_settings;
  Log& m_log;
  Files m_files;
  AgentLauncher m_launcher;  // used only by the caller that connects
  std::mutex m_mutex;        // guards everything below
  std::optional<Session> m_session;
  std::map<std::string, std::uint64_t> m_highest_numbers;     // of processes, by owner
  std::uint64_t m_connections = 0;                            // made so far
  std::shared_ptr<std::optional<Result<Session>>> m_attempt;  // while a caller connects; its outcome at the end
  std::condition_variable_any m_attempt_ended;
};

}  // namespace dockbridge::sandbox
