#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "sandbox/agent_launch.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/connection.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "util/mutex.hpp"
#include "wire/frame.hpp"

namespace dockbridge::sandbox {

/// The connection to a container's agent. Connects when it is first used, and reconnects after a loss. Any thread may
/// call; requests run concurrently. Every wait is bounded.
class AgentLink {
 public:
  struct Session {
    ContainerRun run;
    std::shared_ptr<Connection> connection;
    std::uint64_t number = 0;  ///< counts the connections, from 1 on
  };

  AgentLink(Channel& channel, AgentLauncher launcher, Log& log);

  [[nodiscard]] std::string container_name() const { return m_channel.container_name(); }
  /// Number of connections that replaced a lost one.
  [[nodiscard]] std::uint64_t reconnections();
  /// The current session, alive or not; nullopt if there is none. Does no input or output.
  std::optional<Session> present_session();
  /// The current session if it is alive; nullopt if not. Reads what has arrived first, so that it notices the end of
  /// the stream. Does not connect.
  std::optional<Session> live_session();
  /// A live session, created if there is none. One caller connects; others that call meanwhile share the result.
  Result<Session> session(const std::stop_token& stop, Connect may_connect = Connect::if_needed);
  /// Reconnects after a loss. Fails if the container is no longer in this run. The engine may report "running" for a
  /// moment after the container was killed, and reconnecting then starts it again.
  Result<Session> expect_run(const ContainerRun& run, const std::stop_token& stop);

  /// Sends a request and waits for the answer. It is not repeated after a loss.
  Result<wire::Frame> call(const Session& current, nlohmann::json head, std::string_view body, milliseconds patience,
                           const CallLimit& limit);
  /// The same over a live session, which is created if there is none.
  Result<wire::Frame> ask(nlohmann::json head, std::string_view body, milliseconds patience, const CallLimit& limit,
                          Connect may_connect = Connect::if_needed);
  /// Sends a request about an existing process. After a lost connection it is sent again if it is `repeatable`.
  Result<wire::Frame> call_again(const nlohmann::json& head, std::string_view body, milliseconds patience,
                                 bool repeatable, const CallLimit& limit);
  /// Sends a request over the current connection without waiting for an answer. Without a connection it does nothing.
  void post(nlohmann::json head);
  /// Ends the session after a violation of the protocol: the next call starts another.
  tl::unexpected<Error> drop_session(Error error);

 private:
  Result<Session> connect(bool again);
  /// Cause of a broken or silent connection, with the help of the engine.
  Error explain(const Session& session, const Error& error);
  void forget(const std::shared_ptr<Connection>& connection);

  Channel& m_channel;
  Log& m_log;
  AgentLauncher m_launcher;  // used only by the caller that connects
  Mutex m_mutex;
  std::optional<Session> m_session GUARDED_BY(m_mutex);
  std::uint64_t m_connections GUARDED_BY(m_mutex) = 0;  // made so far
  /// Set while a caller connects; receives the outcome.
  std::shared_ptr<std::optional<Result<Session>>> m_attempt GUARDED_BY(m_mutex);
  std::condition_variable_any m_attempt_ended;
};

}  // namespace dockbridge::sandbox
