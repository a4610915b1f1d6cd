#include "sandbox/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "sandbox/agent_link.hpp"
#include "util/random.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

/// Time and interval for looking up a process that another call is starting. Longer than the agent waits for a start.
constexpr milliseconds k_start_patience{6'000};
constexpr milliseconds k_start_interval{50};
/// Output up to this size is part of the answer to start and wait.
constexpr std::size_t k_carry_bytes = 64 * 1024;
constexpr std::size_t k_process_token_length = 16;
constexpr std::size_t k_max_owners = 1000;
/// Longer than a server usually runs, and within the agent's limit for timeouts.
constexpr milliseconds k_watch_time = std::chrono::hours(24 * 30);
/// Long, because the agent searches stored output in steps, between other requests.
constexpr milliseconds k_grep_patience{45'000};
/// A screen is drawn in milliseconds. If its process is stopped, replies go without it.
constexpr milliseconds k_screen_patience{2'000};

/// Whether the outcome can be true: it was requested, and a timeout has passed when the wait `took` this long.
/// Otherwise the agent violates the protocol.
bool is_plausible(wire::WaitOutcome happened, const WaitCondition& until, milliseconds timeout, Clock::duration took) {
  constexpr milliseconds k_slack{100};
  switch (happened) {
    case wire::WaitOutcome::ended:
      return true;
    case wire::WaitOutcome::grew:
      return until.known.has_value();
    case wire::WaitOutcome::pattern:
      return until.pattern.has_value();
    case wire::WaitOutcome::port:
      return until.port.has_value();
    case wire::WaitOutcome::idle:
      return until.idle.has_value() || until.answer;
    case wire::WaitOutcome::input:
      return until.input || until.answer;
    case wire::WaitOutcome::side:
      return until.known_side.has_value();
    case wire::WaitOutcome::nothing:
      return took + k_slack >= timeout;
  }
  return false;
}

/// The terms of a wait that carries short output.
wire::WaitTerms terms_of(milliseconds timeout, const WaitCondition& until) {
  return {timeout, k_carry_bytes, until};
}

/// Retries while another call is starting the process.
template <typename Ask>
auto retry_while_starting(const CallLimit& limit, const Ask& ask) {
  const auto patience = Deadline::after(k_start_patience);
  auto answer = ask();
  while (!answer && answer.error().code == ErrorCode::keeper_busy && !patience.passed() && !limit.is_over()) {
    std::this_thread::sleep_for(k_start_interval);
    answer = ask();
  }
  return answer;
}

/// Errors of a `start` after which the command may run. After any other error it does not.
bool may_run_after(ErrorCode code) {
  using enum ErrorCode;
  constexpr std::array k_codes = {keeper_busy, spool_damaged, io_error, too_large, record_damaged};
  return std::find(k_codes.begin(), k_codes.end(), code) != k_codes.end();
}

void explain_loss_in(wire::ProcessState& state, std::uint32_t generation) {
  if (state.phase == wire::Phase::lost && generation_of(state.id) != generation) {
    state.cause = wire::Cause::container;
  }
}

}  // namespace

void Processes::explain_loss(wire::ProcessState& state) {
  if (const auto current = m_link.present_session()) {
    explain_loss_in(state, current->run.generation());
  }
}

Result<std::string> Processes::new_process_id(const std::stop_token& stop, const std::optional<std::string>& key) {
  const auto current = m_link.session(stop);
  if (!current) {
    return fail(current.error());
  }
  return fmt::format("proc_{}_{}", current->run.generation(), key ? *key : random_token(k_process_token_length));
}

Result<Snapshot> Processes::checked_snapshot(const wire::Frame& frame, const std::string& process, bool or_namesake) {
  auto snapshot = m_calls.read<Snapshot>(frame);
  const auto is_meant = [&](const std::string& id) {
    return id == process || (or_namesake && id.ends_with(process.substr(process.rfind('_'))));
  };
  if (snapshot && !is_meant(snapshot->state.id)) {
    return m_calls.reject(violation());
  }
  if (snapshot) {
    explain_loss(snapshot->state);
  }
  return snapshot;
}

Result<Snapshot> Processes::start(const StartRequest& request, milliseconds timeout, const WaitCondition& until,
                                  const CallLimit& limit) {
  const wire::StartRequest message{request, highest_number(request.owner), terms_of(timeout, until)};
  const wire::OutgoingMessage outgoing = wire::outgoing(message);
  const json& head = outgoing.head;
  const std::string_view body = outgoing.body();
  const bool keyed = !request.call.empty();
  const auto before = m_link.session(limit.stop());
  if (!before) {
    return before.error().code == ErrorCode::cancelled
               ? fail(ErrorCode::never_started, "The call was cancelled before it was sent")
               : fail(before.error());
  }
  auto answer = m_link.call(*before, head, body, timeout + k_answer_patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost) {
    // The id was created here, so a lookup tells whether the process was started, and nothing is started twice.
    m_log.warn("connection to the agent lost while starting a process", {{"process", request.id}});
    const auto again = m_link.expect_run(before->run, limit.stop());
    if (!again) {
      return fail_unknown(again.error());
    }
    if (!keyed) {
      auto found = retry_while_starting(limit, [&] { return wait(request.id, timeout, until, limit); });
      if (found) {
        return found;
      }
      if (found.error().code != ErrorCode::no_such_process) {
        return fail_unknown(found.error());
      }
    }
    answer = m_link.call(*again, head, body, timeout + k_answer_patience, limit);
  }
  if (!answer && keyed && answer.error().code == ErrorCode::keeper_busy) {
    answer = retry_while_starting(limit, [&] { return m_link.ask(head, body, timeout + k_answer_patience, limit); });
  }
  if (!answer) {
    return may_run_after(answer.error().code) ? fail_unknown(answer.error()) : fail(answer.error());
  }
  auto snapshot = checked_snapshot(*answer, request.id, keyed);
  if (snapshot) {
    note_number(snapshot->state);
  }
  return snapshot;
}

std::uint64_t Processes::highest_number(const std::string& owner) {
  const MutexLock lock(m_mutex);
  const auto known = m_highest_numbers.find(owner);
  return known == m_highest_numbers.end() ? 0 : known->second;
}

void Processes::note_number(const wire::ProcessState& state) {
  const MutexLock lock(m_mutex);
  if (m_highest_numbers.contains(state.owner) || m_highest_numbers.size() < k_max_owners) {
    std::uint64_t& highest = m_highest_numbers[state.owner];
    highest = std::max(highest, state.number);
  }
}

Result<Snapshot> Processes::wait(const std::string& process, milliseconds timeout, const WaitCondition& until,
                                 const CallLimit& limit) {
  const auto asked = Clock::now();
  const auto answer = m_calls.send(wire::WaitRequest{.process = process, .wait = terms_of(timeout, until)},
                                   timeout + k_answer_patience, limit);
  auto snapshot = answer ? checked_snapshot(*answer, process) : fail(answer.error());
  return !snapshot || is_plausible(snapshot->happened, until, timeout, Clock::now() - asked)
             ? std::move(snapshot)
             : m_calls.reject(violation());
}

Result<Snapshot> Processes::wait_for_any(const std::vector<std::string>& processes, milliseconds timeout,
                                         const WaitCondition& until, const CallLimit& limit) {
  const wire::WaitRequest request{.process = "", .processes = processes, .wait = terms_of(timeout, until)};
  const auto asked = Clock::now();
  const auto answer = m_link.call_again(wire::to_json(request), {}, timeout + k_answer_patience, true, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto snapshot = m_calls.read<Snapshot>(*answer);
  if (!snapshot) {
    return snapshot;
  }
  if (!is_plausible(snapshot->happened, until, timeout, Clock::now() - asked) ||
      std::find(processes.begin(), processes.end(), snapshot->state.id) == processes.end()) {
    return m_calls.reject(violation());
  }
  explain_loss(snapshot->state);
  return snapshot;
}

std::uint64_t Processes::watch_end(const std::string& process, bool closed,
                                   std::function<void(const wire::ProcessState& state)> on_end) {
  const auto current = m_link.present_session();
  if (!current) {
    return 0;
  }
  const wire::WaitRequest request{.process = process, .wait = {k_watch_time, 0, WaitCondition{.closed = closed}}};
  current->connection->post(wire::to_json(request), [process, generation = current->run.generation(),
                                                     on_end = std::move(on_end)](const Result<wire::Frame>& reply) {
    // A malformed reply is ignored: a watch is not guaranteed.
    auto snapshot = reply ? wire::message_from<Snapshot>(reply->head, ErrorCode::protocol_violation, reply->body)
                          : fail(reply.error());
    if (snapshot && snapshot->state.id == process && snapshot->happened == wire::WaitOutcome::ended) {
      explain_loss_in(snapshot->state, generation);
      on_end(snapshot->state);
    }
  });
  return current->number;
}

Result<Snapshot> Processes::find(const std::string& process, const std::string& owner, const CallLimit& limit) {
  const auto number = wire::process_number_in(process);
  if (!number) {
    // With the owner, so that another owner's expired process is reported like an unknown one.
    const wire::WaitRequest request{.process = process, .owner = owner, .wait = terms_of(milliseconds(0), {})};
    const auto answer = m_calls.send(request, k_answer_patience, limit);
    auto snapshot = answer ? checked_snapshot(*answer, process) : fail(answer.error());
    return !snapshot || snapshot->state.owner == owner ? std::move(snapshot)
                                                       : fail(m_calls.unknown_process(process, limit));
  }
  const wire::WaitRequest request{
      .process = "", .owner = owner, .number = *number, .wait = terms_of(milliseconds(0), {})};
  const auto answer = m_link.call_again(wire::to_json(request), {}, k_answer_patience, true, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto snapshot = m_calls.read<Snapshot>(*answer);
  if (snapshot && (snapshot->state.number != *number || snapshot->state.owner != owner)) {
    return m_calls.reject(violation());
  }
  if (snapshot) {
    explain_loss(snapshot->state);
  }
  return snapshot;
}

Result<OutputSlice> Processes::read(const std::string& process, Stream stream, std::uint64_t offset, std::size_t max,
                                    const CallLimit& limit) {
  const wire::ReadRequest request{process, stream, offset, max};
  auto answer = m_calls.send(request, k_answer_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  return m_calls.read(
      *answer, [&](const wire::Field& head) { return OutputSlice::from_json(head, std::move(answer->body), request); });
}

Result<GrepResult> Processes::grep(const std::string& process, const GrepRequest& query, const CallLimit& limit) {
  const auto answer = m_calls.send(wire::GrepRequest{process, query}, k_grep_patience, limit);
  return answer ? m_calls.read<GrepResult>(*answer) : fail(answer.error());
}

Result<ProcessList> Processes::list(const std::string& owner, std::size_t most_finished, const CallLimit& limit,
                                    Connect may_connect) {
  const wire::ListRequest request{.owner = owner, .most_finished = most_finished};
  const auto answer = m_link.ask(wire::to_json(request), {}, k_answer_patience, limit, may_connect);
  if (!answer) {
    return fail(answer.error());
  }
  auto list = m_calls.read<ProcessList>(*answer);
  if (list) {
    for (wire::ProcessState& state : list->processes) {
      explain_loss(state);
    }
  }
  return list;
}

Result<Screen> Processes::screen(const std::string& process, const CallLimit& limit) {
  const auto answer = m_calls.send(wire::ScreenRequest{process}, k_screen_patience, limit);
  return answer ? m_calls.read<Screen>(*answer) : fail(answer.error());
}

}  // namespace dockbridge::sandbox
