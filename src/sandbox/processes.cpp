#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "sandbox/answer_fields.hpp"
#include "sandbox/answers.hpp"
#include "sandbox/sandbox.hpp"
#include "util/random.hpp"
#include "wire/frame.hpp"

namespace dockbridge::sandbox {

namespace {

using nlohmann::json;

/// How long a process that is just being started is asked for, and how often. More than the agent takes it for one.
constexpr milliseconds k_start_patience{6'000};
constexpr milliseconds k_start_interval{50};
/// Output up to this size rides along with the answer to start and wait.
constexpr std::size_t k_carry_bytes = 64 * 1024;
constexpr std::size_t k_token_length = 16;
constexpr int k_list_depth = 8;
constexpr std::size_t k_max_owners = 1000;
/// More states than an agent can send in one reply.
constexpr std::size_t k_max_listed = 10'000;
/// Longer than a server runs, in the range of the agent's timeouts.
constexpr milliseconds k_watch_time = std::chrono::hours(24 * 30);
/// Long, because the agent searches stored output in steps, between other requests.
constexpr milliseconds k_grep_patience{45'000};

json to_json(const Until& until) {
  json fields = json::object();
  if (until.known) {
    fields["known"] = *until.known;
  }
  if (until.pattern) {
    fields["pattern"] = *until.pattern;
    fields["from"] = until.search_from;
  }
  if (until.port) {
    fields["port"] = *until.port;
  }
  if (until.idle) {
    fields["idleMs"] = until.idle->count();
    if (until.longest_idle) {
      fields["longestIdleMs"] = until.longest_idle->count();
    }
  }
  if (until.input) {
    fields["input"] = true;
  }
  if (until.answer) {
    fields["answer"] = true;
  }
  if (until.closed) {
    fields["closed"] = true;
  }
  return fields;
}

json to_json(wire::TerminalSize size) {
  return json::array({size.columns, size.rows});
}

/// An agent that answers with what nobody asked for, or before its time, is not to be believed.
bool is_plausible(wire::Happened happened, const Until& until, milliseconds timeout, Clock::time_point asked) {
  constexpr milliseconds k_slack{100};
  switch (happened) {
    case wire::Happened::ended:
      return true;
    case wire::Happened::grew:
      return until.known.has_value();
    case wire::Happened::pattern:
      return until.pattern.has_value();
    case wire::Happened::port:
      return until.port.has_value();
    case wire::Happened::idle:
      return until.idle.has_value() || until.answer;
    case wire::Happened::input:
      return until.input || until.answer;
    case wire::Happened::nothing:
      return Clock::now() - asked + k_slack >= timeout;
  }
  return false;
}

Result<Screen> screen_of(wire::Frame frame) {
  const auto facts = wire::screen_facts_from_json(frame.head.value("screen", json()));
  return facts ? Result<Screen>(Screen{*facts, std::move(frame.body)}) : fail(facts.error());
}

Result<Listener> listener_from(const json& fields) {
  try {
    Listener listener;
    listener.pid = static_cast<std::int64_t>(number_in(fields, "pid", wire::k_max_pid));
    listener.command = text_in(fields, "command");
    listener.is_own = flag_in(fields, "own");
    if (fields.contains("process")) {
      listener.process = name_in(fields, "process", wire::is_process_id);
      listener.number = number_in(fields, "number", wire::k_max_process_number);
    }
    return listener;
  } catch (const std::exception&) {
    return fail(ErrorCode::protocol_violation, "The agent's reply has a malformed listener");
  }
}

Result<Snapshot> snapshot_of(wire::Frame frame) {
  const auto process = frame.head.find("process");
  const auto carried = frame.head.find("carried");
  if (process == frame.head.end() || carried == frame.head.end() || !carried->is_boolean()) {
    return fail(ErrorCode::protocol_violation, "The agent's reply has no process");
  }
  auto state = wire::process_state_from_json(*process);
  if (!state) {
    return fail(state.error());
  }
  const auto happened = frame.head.find("happened");
  const auto what = happened == frame.head.end() ? std::nullopt : wire::happened_from(*happened);
  if (!what) {
    return fail(ErrorCode::protocol_violation, "The agent's reply has no reason");
  }
  Snapshot snapshot;
  snapshot.state = std::move(*state);
  snapshot.happened = *what;
  if (const auto searched = frame.head.find("searched"); searched != frame.head.end()) {
    const auto offsets = offsets_from(*searched);
    if (!offsets) {
      return fail(ErrorCode::protocol_violation, "The agent's reply has no search position");
    }
    snapshot.searched = *offsets;
  }
  if (const auto line = frame.head.find("line"); line != frame.head.end()) {
    if (!line->is_string()) {
      return fail(ErrorCode::protocol_violation, "The agent's reply has a line that is not text");
    }
    snapshot.line = line->get<std::string>();
  }
  if (const auto order = frame.head.find("order"); order != frame.head.end()) {
    auto marks = wire::write_order_from_json(*order);
    if (!marks) {
      return fail(marks.error());
    }
    snapshot.order = std::move(*marks);
  }
  if (const auto listener = frame.head.find("listener"); listener != frame.head.end()) {
    auto read = listener_from(*listener);
    if (!read) {
      return fail(read.error());
    }
    snapshot.listener = std::move(*read);
  }
  snapshot.whole = carried->get<bool>();
  if (snapshot.whole) {
    const auto out = snapshot.state.out.total;
    if (out > frame.body.size() || frame.body.size() - out != snapshot.state.err.total) {
      return fail(ErrorCode::protocol_violation, "The agent's reply and its body differ in size");
    }
    snapshot.out = frame.body.substr(0, out);
    snapshot.err = frame.body.substr(out);
  }
  return snapshot;
}

/// Asks again as long as The process is starting by somebody else.
template <typename Ask>
auto once_started(const CallLimit& limit, const Ask& ask) {
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

}  // namespace

Result<std::string> Sandbox::new_process_id(const std::stop_token& stop, const std::optional<std::string>& key) {
  const auto current = session(stop);
  if (!current) {
    return fail(current.error());
  }
  return fmt::format("proc_{}_{}", current->run.generation(), key ? *key : random_token(k_token_length));
}

Result<Snapshot> Sandbox::checked_snapshot(wire::Frame frame, const std::string& process, bool or_namesake) {
  auto snapshot = snapshot_of(std::move(frame));
  const auto is_meant = [&](const std::string& id) {
    return id == process || (or_namesake && id.ends_with(process.substr(process.rfind('_'))));
  };
  if (snapshot && is_meant(snapshot->state.id)) {
    explain_loss(snapshot->state);
    return snapshot;
  }
  return drop_session(snapshot ? violation() : snapshot.error());
}

Result<Snapshot> Sandbox::start(const StartRequest& request, milliseconds timeout, const Until& until,
                                const CallLimit& limit) {
  std::string environment;
  for (const auto& [name, value] : request.environment) {
    environment.append(name).append("=").append(value).push_back('\0');
  }
  json head = {{"op", "start"},
               {"process", request.id},
               {"cwd", request.cwd},
               {"commandBytes", request.command.size()},
               {"environmentBytes", environment.size()},
               {"stdin", request.input ? "body" : "pipe"},
               {"owner", request.owner},
               {"rationale", request.rationale},
               {"maxRuntimeMs", request.max_runtime.count()},
               {"timeoutMs", timeout.count()},
               {"carry", k_carry_bytes},
               {"until", to_json(until)}};
  if (request.output_limit > 0) {
    head["outputLimit"] = request.output_limit;
  }
  if (request.nice > 0) {
    head["nice"] = request.nice;
  }
  if (request.terminal) {
    head["terminal"] = to_json(*request.terminal);
  }
  if (request.user) {
    head["user"] = *request.user;
  }
  if (const std::uint64_t number = highest_number(request.owner); number > 0) {
    head["above"] = number;
  }
  const bool keyed = !request.call.empty();
  if (keyed) {
    head["call"] = request.call;
  }
  const std::string body = request.command + environment + request.input.value_or("");
  const auto before = session(limit.stop());
  if (!before) {
    return before.error().code == ErrorCode::cancelled
               ? fail(ErrorCode::never_started, "The call was cancelled before it was sent")
               : fail(before.error());
  }
  auto answer = call(*before, head, body, timeout + k_answer_patience, limit);
  if (!answer && answer.error().code == ErrorCode::connection_lost) {
    // The id was minted here, so whether the process was started can be looked up, and nothing is started twice.
    m_log.warn("lost the agent while starting a process", {{"process", request.id}});
    const auto again = expect_run(before->run, limit.stop());
    if (!again) {
      return fail_unknown(again.error());
    }
    if (!keyed) {
      auto found = once_started(limit, [&] { return wait(request.id, timeout, until, limit); });
      if (found) {
        return found;
      }
      if (found.error().code != ErrorCode::no_such_process) {
        return fail_unknown(found.error());
      }
    }
    answer = call(*again, head, body, timeout + k_answer_patience, limit);
  }
  if (!answer && keyed && answer.error().code == ErrorCode::keeper_busy) {
    answer = once_started(limit, [&] { return ask(head, body, timeout + k_answer_patience, limit); });
  }
  if (!answer) {
    return may_run_after(answer.error().code) ? fail_unknown(answer.error()) : fail(answer.error());
  }
  auto snapshot = checked_snapshot(std::move(*answer), request.id, keyed);
  if (snapshot) {
    note_number(snapshot->state);
  }
  return snapshot;
}

std::uint64_t Sandbox::highest_number(const std::string& owner) {
  const std::lock_guard lock(m_mutex);
  const auto known = m_highest_numbers.find(owner);
  return known == m_highest_numbers.end() ? 0 : known->second;
}

void Sandbox::note_number(const wire::ProcessState& state) {
  const std::lock_guard lock(m_mutex);
  if (m_highest_numbers.contains(state.owner) || m_highest_numbers.size() < k_max_owners) {
    std::uint64_t& highest = m_highest_numbers[state.owner];
    highest = std::max(highest, state.number);
  }
}

Result<Snapshot> Sandbox::wait(const std::string& process, milliseconds timeout, const Until& until,
                               const CallLimit& limit) {
  const json head = {
      {"op", "wait"}, {"timeoutMs", timeout.count()}, {"carry", k_carry_bytes}, {"until", to_json(until)}};
  const auto asked = Clock::now();
  auto answer = call_process(process, head, {}, timeout + k_answer_patience, limit);
  auto snapshot = answer ? checked_snapshot(std::move(*answer), process) : fail(answer.error());
  return !snapshot || is_plausible(snapshot->happened, until, timeout, asked) ? std::move(snapshot)
                                                                              : drop_session(violation());
}

Result<Snapshot> Sandbox::wait_for_any(const std::vector<std::string>& processes, milliseconds timeout,
                                       const Until& until, const CallLimit& limit) {
  const json head = {{"op", "wait"},
                     {"processes", processes},
                     {"timeoutMs", timeout.count()},
                     {"carry", k_carry_bytes},
                     {"until", to_json(until)}};
  const auto asked = Clock::now();
  auto answer = call_again(head, {}, timeout + k_answer_patience, true, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto snapshot = snapshot_of(std::move(*answer));
  if (!snapshot || !is_plausible(snapshot->happened, until, timeout, asked) ||
      std::find(processes.begin(), processes.end(), snapshot->state.id) == processes.end()) {
    return drop_session(snapshot ? violation() : snapshot.error());
  }
  explain_loss(snapshot->state);
  return snapshot;
}

std::uint64_t Sandbox::watch_end(const std::string& process, bool closed,
                                 std::function<void(const wire::ProcessState& state)> on_end) {
  std::shared_ptr<Connection> connection;
  std::uint64_t number = 0;
  std::uint32_t generation = 0;
  {
    const std::lock_guard lock(m_mutex);
    connection = m_session ? m_session->connection : nullptr;
    generation = m_session ? m_session->run.generation() : 0;
    number = m_connections;
  }
  if (!connection) {
    return 0;
  }
  const json head = {{"op", "wait"},
                     {"process", process},
                     {"timeoutMs", k_watch_time.count()},
                     {"carry", 0},
                     {"until", to_json(Until{.closed = closed})}};
  connection->post(head, [process, generation, on_end = std::move(on_end)](const Result<wire::Frame>& reply) {
    // A malformed reply is like none: a watch is no promise.
    auto snapshot = reply ? snapshot_of(*reply) : fail(reply.error());
    if (snapshot && snapshot->state.id == process && snapshot->happened == wire::Happened::ended) {
      explain_loss(snapshot->state, generation);
      on_end(snapshot->state);
    }
  });
  return number;
}

Result<Snapshot> Sandbox::find(const std::string& process, const std::string& owner, const CallLimit& limit) {
  const auto number = wire::process_number_in(process);
  if (!number) {
    // With the owner, so that another owner's expired process is reported like an unknown one.
    auto answer = call_process(
        process,
        {{"op", "wait"}, {"owner", owner}, {"timeoutMs", 0}, {"carry", k_carry_bytes}, {"until", json::object()}}, {},
        k_answer_patience, limit);
    auto snapshot = answer ? checked_snapshot(std::move(*answer), process) : fail(answer.error());
    return !snapshot || snapshot->state.owner == owner ? std::move(snapshot) : fail(unknown_process(process, limit));
  }
  const json head = {{"op", "wait"},   {"owner", owner},         {"number", *number},
                     {"timeoutMs", 0}, {"carry", k_carry_bytes}, {"until", json::object()}};
  auto answer = call_again(head, {}, k_answer_patience, true, limit);
  auto snapshot = answer ? snapshot_of(std::move(*answer)) : fail(answer.error());
  if (answer && (!snapshot || snapshot->state.number != *number || snapshot->state.owner != owner)) {
    return drop_session(snapshot ? violation() : snapshot.error());
  }
  if (snapshot) {
    explain_loss(snapshot->state);
  }
  return snapshot;
}

Result<OutputSlice> Sandbox::read(const std::string& process, Stream stream, std::uint64_t offset, std::size_t max,
                                  const CallLimit& limit) {
  const json head = {
      {"op", "read"}, {"stream", stream == Stream::err ? "err" : "out"}, {"offset", offset}, {"max", max}};
  auto answer = call_process(process, head, {}, k_answer_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  const auto at = answer->head.find("offset");
  const auto totals = answer->head.find("stream");
  const auto stream_state = totals == answer->head.end() ? fail(violation()) : wire::stream_state_from_json(*totals);
  if (!stream_state || at == answer->head.end() || !at->is_number_unsigned() || *at < offset ||
      at->get<std::uint64_t>() > std::max(offset, wire::k_max_stream_bytes) || answer->body.size() > max) {
    return drop_session(violation());
  }
  return OutputSlice{at->get<std::uint64_t>(), std::move(answer->body), *stream_state};
}

Result<GrepResult> Sandbox::grep(const std::string& process, const GrepRequest& request, const CallLimit& limit) {
  const json head = {{"op", "grep"},
                     {"pattern", request.pattern},
                     {"ignoreCase", request.ignore_case},
                     {"context", request.context},
                     {"most", request.most}};
  auto answer = call_process(process, head, {}, k_grep_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  const auto matches = offsets_from(answer->head.value("matches", json()));
  const auto shown = offsets_from(answer->head.value("shown", json()));
  const json out_bytes = answer->head.value("outBytes", json());
  if (!matches || !shown || !out_bytes.is_number_unsigned() || out_bytes > answer->body.size()) {
    return drop_session(violation());
  }
  const auto split = out_bytes.get<std::size_t>();
  return GrepResult{answer->body.substr(0, split), answer->body.substr(split), *matches, *shown};
}

Result<ProcessList> Sandbox::list(const std::string& owner, std::size_t most_finished, const CallLimit& limit,
                                  Connect may_connect) {
  auto answer = ask({{"op", "list"}, {"owner", owner}, {"most", k_max_listed}, {"finished", most_finished}}, {},
                    k_answer_patience, limit, may_connect);
  if (!answer) {
    return fail(answer.error());
  }
  const auto body = wire::parse_bounded(answer->body, k_list_depth);
  const auto left = answer->head.find("left");
  if (!body || !body->contains("processes") || !body->at("processes").is_array() || left == answer->head.end() ||
      !left->is_number_unsigned() || left->get<std::uint64_t>() > wire::k_max_stream_bytes ||
      body->at("processes").size() > k_max_listed) {
    return drop_session(violation());
  }
  ProcessList list;
  list.left_out = left->get<std::uint64_t>();
  for (const json& entry : body->at("processes")) {
    auto state = wire::process_state_from_json(entry);
    if (!state) {
      return drop_session(state.error());
    }
    explain_loss(*state);
    list.processes.push_back(std::move(*state));
  }
  return list;
}

Result<Screen> Sandbox::screen(const std::string& process, const CallLimit& limit) {
  auto answer = call_process(process, {{"op", "screen"}}, {}, k_answer_patience, limit);
  if (!answer) {
    return fail(answer.error());
  }
  auto screen = screen_of(std::move(*answer));
  return screen ? std::move(screen) : drop_session(screen.error());
}

Result<void> Sandbox::resize(const std::string& process, wire::TerminalSize size, const CallLimit& limit) {
  return order(process, {{"op", "resize"}, {"terminal", to_json(size)}}, limit);
}

Result<void> Sandbox::signal(const std::string& process, int number, const CallLimit& limit) {
  return order(process, {{"op", "signal"}, {"signal", number}}, limit);
}

Result<void> Sandbox::end(const std::string& process, wire::Cause cause, milliseconds grace, const CallLimit& limit) {
  return order(process, {{"op", "end"}, {"cause", name_of(cause)}, {"graceMs", grace.count()}}, limit);
}

Result<void> Sandbox::order(const std::string& process, const json& head, const CallLimit& limit) {
  const auto answer = call_process(process, head, {}, k_answer_patience, limit);
  return answer ? Result<void>() : fail(answer.error());
}

}  // namespace dockbridge::sandbox
