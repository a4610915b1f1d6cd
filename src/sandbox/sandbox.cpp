#include "sandbox/sandbox.hpp"

#include <fmt/format.h>

#include "wire/frame.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

constexpr milliseconds k_connect_patience{30'000};
constexpr milliseconds k_inspect_patience{5'000};
/// How often a container may be restarted while it is connected to.
constexpr int k_most_restarts = 3;

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

Sandbox::Sandbox(Channel& channel, Settings settings, Log& log)
    : m_channel(channel),
      m_settings(std::move(settings)),
      m_log(log),
      m_files(*this, m_settings.file_root),
      m_processes(*this, log),
      m_control(*this),
      m_launcher(m_channel, m_settings.workdir, m_settings.retention, TrustedRuns(m_settings.trusted_runs_directory)) {}

Result<Sandbox::Session> Sandbox::session(const std::stop_token& stop, Connect may_connect) {
  MutexLock lock(m_mutex);
  if (m_session && m_session->connection->alive()) {
    return *m_session;
  }
  if (may_connect == Connect::never) {
    return fail(ErrorCode::connection_lost, "No connection to the container");
  }
  if (const auto attempt = m_attempt) {
    m_attempt_ended.wait(lock, stop, [&] { return attempt->has_value(); });
    return *attempt ? **attempt : fail(ErrorCode::cancelled, "The call was cancelled");
  }
  const auto attempt = std::make_shared<std::optional<Result<Session>>>();
  m_attempt = attempt;
  const bool again = m_connections > 0;
  m_session.reset();
  lock.unlock();
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

Result<Sandbox::Session> Sandbox::connect(bool again) {
  const auto deadline = Deadline::after(k_connect_patience);
  const auto began = Clock::now();
  for (int restarts = 0;; ++restarts) {
    const auto run = m_channel.prepare(deadline);
    if (!run) {
      return fail(run.error());
    }
    auto connection = m_launcher.launch(*run, deadline);
    if (!connection) {
      // A container that was paused or stopped in between is the better explanation.
      return fail(explain({*run, nullptr, 0}, connection.error()));
    }
    // An engine that is about to restart the container calls it running, and then starts the agent in the next run.
    const auto condition = m_channel.condition(*run, deadline);
    if (condition && *condition == Condition::gone && restarts < k_most_restarts) {
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

Error Sandbox::explain(const Session& session, const Error& error) {
  const auto condition = m_channel.condition(session.run, Deadline::after(k_inspect_patience));
  Error reason = !condition ? condition.error() : reason_for(*condition, m_channel.container_name()).value_or(error);
  reason.outcome_unknown = error.outcome_unknown;
  return reason;
}

Result<wire::Frame> Sandbox::ask(json head, std::string_view body, milliseconds patience, const CallLimit& limit,
                                 Connect may_connect) {
  const auto current = session(limit.stop(), may_connect);
  return current ? call(*current, std::move(head), body, patience, limit) : fail(current.error());
}

std::optional<Sandbox::Session> Sandbox::present_session() {
  const MutexLock lock(m_mutex);
  return m_session;
}

void Sandbox::post(json head) {
  if (const auto current = present_session()) {
    current->connection->post(std::move(head));
  }
}

Result<wire::Frame> Sandbox::call(const Session& current, json head, std::string_view body, milliseconds patience,
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
    // The container runs, but this stream is dead: the next call gets a new one.
    forget(current.connection);
    error.code = ErrorCode::connection_lost;
  }
  return fail(std::move(error));
}

void Sandbox::forget(const std::shared_ptr<Connection>& connection) {
  const MutexLock lock(m_mutex);
  if (m_session && m_session->connection == connection) {
    m_session.reset();
  }
}

tl::unexpected<Error> Sandbox::drop_session(Error error) {
  m_log.error("the agent broke the protocol, dropping the connection", {{"reason", error.message}});
  const MutexLock lock(m_mutex);
  m_session.reset();
  return fail_unknown(std::move(error));
}

Result<Sandbox::Session> Sandbox::expect_run(const ContainerRun& run, const std::stop_token& stop) {
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

Result<wire::Frame> Sandbox::call_again(const json& head, std::string_view body, milliseconds patience, bool repeatable,
                                        const CallLimit& limit) {
  const auto before = session(limit.stop());
  if (!before) {
    return fail(before.error());
  }
  auto answer = call(*before, head, body, patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost && repeatable) {
    // The container runs on: the process has lost nothing but our ear.
    m_log.warn("lost the agent, reconnecting", {{"reason", answer.error().message}});
    const auto again = expect_run(before->run, limit.stop());
    answer = again ? call(*again, head, body, patience, limit) : fail_unknown(again.error());
  }
  return answer;
}

std::optional<Hello> Sandbox::present_hello() {
  const MutexLock lock(m_mutex);
  return m_session && m_session->connection->alive() ? std::optional(m_session->connection->hello()) : std::nullopt;
}

std::uint64_t Sandbox::reconnections() {
  const MutexLock lock(m_mutex);
  return m_connections > 0 ? m_connections - 1 : 0;
}

std::uint64_t Sandbox::connection_number() {
  const auto current = present_session();
  return current ? current->number : 0;
}

Result<Clock::duration> Sandbox::round_trip() {
  const auto began = Clock::now();
  const auto pong = ask(wire::to_json(wire::PingRequest{}), {}, k_inspect_patience, {}, Connect::never);
  return pong ? Result<Clock::duration>(Clock::now() - began) : fail(pong.error());
}

Result<std::vector<std::string>> Sandbox::writable_mounts(const std::stop_token& stop) {
  const auto current = session(stop);
  return current ? Result<std::vector<std::string>>(current->run.writable_mounts) : fail(current.error());
}

Result<Hello> Sandbox::hello(const std::stop_token& stop) {
  const auto current = session(stop);
  return current ? Result<Hello>(current->connection->hello()) : fail(current.error());
}

}  // namespace dockbridge::sandbox
