#include "sandbox/agent_link.hpp"

#include <fmt/format.h>

#include <utility>

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr milliseconds k_connect_patience{30'000};
constexpr milliseconds k_inspect_patience{5'000};
/// Restarts of the container that are tolerated while connecting.
constexpr int k_max_restarts = 3;

/// The reason why a container in this condition does not answer; nullopt if it should answer.
std::optional<Error> reason_for(Condition condition, const std::string& name) {
  switch (condition) {
    case Condition::paused:
      return Error{ErrorCode::container_paused, fmt::format("Container is paused: {}", name), "docker unpause " + name};
    case Condition::stopped:
      return Error{ErrorCode::container_stopped,
                   fmt::format("Container has stopped: {}. Its processes have ended", name),
                   "The next call starts it; `docker logs " + name + "` may show why it stopped"};
    case Condition::gone:
      return Error{ErrorCode::container_replaced,
                   fmt::format("Container was removed or restarted: {}. Its processes have ended", name),
                   "The next call uses the container that has the name now"};
    case Condition::running:
      break;
  }
  return std::nullopt;
}

}  // namespace

AgentLink::AgentLink(Channel& channel, AgentLauncher launcher, Log& log)
    : m_channel(channel), m_log(log), m_launcher(std::move(launcher)) {}

std::optional<AgentLink::Session> AgentLink::present_session() {
  const MutexLock lock(m_mutex);
  return m_session;
}

std::optional<AgentLink::Session> AgentLink::live_session() {
  auto current = present_session();
  if (current) {
    current->connection->poll_stream();
  }
  return current && current->connection->alive() ? std::move(current) : std::nullopt;
}

Result<AgentLink::Session> AgentLink::session(const std::stop_token& stop, Connect may_connect) {
  if (auto live = live_session()) {
    return std::move(*live);
  }
  if (may_connect == Connect::never) {
    return fail(ErrorCode::connection_lost, "No connection to the container");
  }
  MutexLock lock(m_mutex);
  if (m_session && m_session->connection->alive()) {
    return *m_session;  // another caller has connected in the meantime
  }
  if (const auto attempt = m_attempt) {
    m_attempt_ended.wait(lock, stop, [&] { return attempt->has_value(); });
    return *attempt ? **attempt : fail(ErrorCode::cancelled, "The call was cancelled");
  }
  const auto attempt = std::make_shared<std::optional<Result<Session>>>();
  m_attempt = attempt;
  const bool again = m_connections > 0;
  auto dropped = std::exchange(m_session, std::nullopt);
  lock.unlock();
  dropped.reset();
  Result<Session> connected = fail(ErrorCode::internal_error, "Unexpected failure while connecting to the container");
  try {
    connected = connect(again);
  } catch (const std::exception& error) {
    connected.error().message += std::string(": ") + error.what();
  }
  lock.lock();
  if (connected) {
    connected->number = ++m_connections;
    m_session = *connected;
  }
  *attempt = connected;
  m_attempt.reset();
  m_attempt_ended.notify_all();
  return connected;
}

Result<AgentLink::Session> AgentLink::connect(bool again) {
  const auto deadline = Deadline::after(k_connect_patience);
  const auto began = Clock::now();
  for (int restarts = 0;; ++restarts) {
    const auto run = m_channel.prepare(deadline);
    if (!run) {
      return fail(run.error());
    }
    auto connection = m_launcher.launch(*run, deadline);
    if (!connection) {
      // If the container was paused or stopped in the meantime, the error says so.
      return fail(explain({*run, nullptr, 0}, connection.error()));
    }
    // An engine that is about to restart the container reports it as running, and starts the agent in the next run.
    const auto condition = m_channel.condition(*run, deadline);
    if (condition && *condition == Condition::gone && restarts < k_max_restarts) {
      continue;
    }
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - began).count();
    const auto& detour = (*connection)->hello().detour;
    m_log.info(again ? "reconnected" : "connected", {{"container", m_channel.container_name()},
                                                     {"id", run->id.substr(0, 12)},
                                                     {"ms", std::to_string(took)},
                                                     {"way", detour ? "through the engine: " + *detour : "direct"}});
    return Session{*run, std::move(*connection), 0};
  }
}

Error AgentLink::explain(const Session& session, const Error& error) {
  const auto condition = m_channel.condition(session.run, Deadline::after(k_inspect_patience));
  Error reason = !condition ? condition.error() : reason_for(*condition, m_channel.container_name()).value_or(error);
  reason.outcome_unknown = error.outcome_unknown;
  return reason;
}

Result<wire::Frame> AgentLink::ask(json head, std::string_view body, milliseconds patience, const CallLimit& limit,
                                   Connect may_connect) {
  const auto current = session(limit.stop(), may_connect);
  return current ? call(*current, std::move(head), body, patience, limit) : fail(current.error());
}

void AgentLink::post(json head) {
  if (const auto current = present_session()) {
    current->connection->post(std::move(head));
  }
}

Result<wire::Frame> AgentLink::call(const Session& current, json head, std::string_view body, milliseconds patience,
                                    const CallLimit& limit) {
  if (limit.is_over()) {
    return limit.stop().stop_requested()
               ? fail(ErrorCode::cancelled, "The call was cancelled")
               : fail(ErrorCode::timed_out, "The call exceeded its time limit before the request was sent",
                      "Call again");
  }
  auto answer = current.connection->call(std::move(head), body, limit.deadline_within(patience), limit.stop());
  if (answer || (answer.error().code != ErrorCode::connection_lost && answer.error().code != ErrorCode::agent_silent)) {
    return answer;
  }
  Error error = explain(current, answer.error());
  if (error.code == ErrorCode::agent_silent) {
    // The container runs, but this stream is dead: the next call opens a new one.
    forget(current.connection);
    error.code = ErrorCode::connection_lost;
  }
  return fail(std::move(error));
}

void AgentLink::forget(const std::shared_ptr<Connection>& connection) {
  const MutexLock lock(m_mutex);
  if (m_session && m_session->connection == connection) {
    m_session.reset();  // the caller has the connection too, so it is not destroyed under the lock
  }
}

tl::unexpected<Error> AgentLink::drop_session(Error error) {
  m_log.error("protocol violation by the agent, dropping the connection", {{"reason", error.message}});
  const auto dropped = present_session();  // destroyed after the lock is released
  if (dropped) {
    forget(dropped->connection);
  }
  return fail_unknown(std::move(error));
}

Result<AgentLink::Session> AgentLink::expect_run(const ContainerRun& run, const std::stop_token& stop) {
  auto current = session(stop);
  if (!current) {
    return fail(current.error());
  }
  if (current->run != run) {
    return fail(ErrorCode::container_stopped,
                fmt::format("Container has stopped: {}. Its processes have ended", container_name()),
                "It runs again; `docker logs " + container_name() + "` may show why it stopped");
  }
  return current;
}

Result<wire::Frame> AgentLink::call_again(const json& head, std::string_view body, milliseconds patience,
                                          bool repeatable, const CallLimit& limit) {
  const auto before = session(limit.stop());
  if (!before) {
    return fail(before.error());
  }
  auto answer = call(*before, head, body, patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost && repeatable) {
    // The process keeps running as long as the container does.
    m_log.warn("connection to the agent lost, reconnecting", {{"reason", answer.error().message}});
    const auto again = expect_run(before->run, limit.stop());
    answer = again ? call(*again, head, body, patience, limit) : fail_unknown(again.error());
  }
  return answer;
}

std::uint64_t AgentLink::reconnections() {
  const MutexLock lock(m_mutex);
  return m_connections > 0 ? m_connections - 1 : 0;
}

}  // namespace dockbridge::sandbox
