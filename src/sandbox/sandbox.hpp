#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/agent_launch.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/connection.hpp"
#include "sandbox/files.hpp"
#include "sandbox/process_control.hpp"
#include "sandbox/processes.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "util/mutex.hpp"
#include "wire/frame.hpp"
#include "wire/retention.hpp"

namespace dockbridge::sandbox {

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
  [[nodiscard]] Processes& processes() { return m_processes; }
  [[nodiscard]] ProcessControl& control() { return m_control; }
  /// Sends a request over the current connection without waiting for a reply. Does nothing if there is no connection.
  void post(nlohmann::json head);
  /// A request in the words of docs/agent-protocol.md. Not repeated after a loss.
  Result<wire::Frame> ask(nlohmann::json head, std::string_view body, milliseconds patience, const CallLimit& limit,
                          Connect may_connect = Connect::if_needed);
  /// The agent is not to be believed any more: the next call starts another.
  tl::unexpected<Error> drop_session(Error error);

  /// The number of the current connection; 0 if there is none.
  [[nodiscard]] std::uint64_t connection_number();

  // For `Processes`, `ProcessControl` and `Files`.

  struct Session {
    ContainerRun run;
    std::shared_ptr<Connection> connection;
    std::uint64_t number = 0;  ///< counts the connections, from 1 on
  };

  /// A live connection, made if there is none. One caller makes it; those who come meanwhile share what becomes of it.
  Result<Session> session(const std::stop_token& stop, Connect may_connect = Connect::if_needed);
  /// The current connection; nullopt if there is none. Does not connect.
  std::optional<Session> present_session();
  /// After a loss: an error if the container is not in the same run any more. The engine may have said "running" for a
  /// moment after it was killed, and reconnecting then has started it again.
  Result<Session> expect_run(const ContainerRun& run, const std::stop_token& stop);
  Result<wire::Frame> call(const Session& current, nlohmann::json head, std::string_view body, milliseconds patience,
                           const CallLimit& limit);
  /// Sends a request about an existing process. After a lost connection it is sent again, if it is `repeatable`.
  Result<wire::Frame> call_again(const nlohmann::json& head, std::string_view body, milliseconds patience,
                                 bool repeatable, const CallLimit& limit);

 private:
  Result<Session> connect(bool again);
  /// What stands behind a connection that broke or fell silent.
  Error explain(const Session& session, const Error& error);
  void forget(const std::shared_ptr<Connection>& connection);

  Channel& m_channel;
  Settings m_settings;
  Log& m_log;
  Files m_files;
  Processes m_processes;
  ProcessControl m_control;
  AgentLauncher m_launcher;  // used only by the caller that connects
  Mutex m_mutex;
  std::optional<Session> m_session GUARDED_BY(m_mutex);
  std::uint64_t m_connections GUARDED_BY(m_mutex) = 0;  // made so far
  std::shared_ptr<std::optional<Result<Session>>> m_attempt
      GUARDED_BY(m_mutex);  // while a caller connects; its outcome at the end
  std::condition_variable_any m_attempt_ended;
};

}  // namespace dockbridge::sandbox
