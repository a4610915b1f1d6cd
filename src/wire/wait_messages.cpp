#include "wire/wait_messages.hpp"

#include <algorithm>
#include <array>

namespace dockbridge::wire {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> k_outcomes = {"ended", "grew", "pattern", "port", "idle", "input", "nothing"};
constexpr std::string_view k_input_in_body = "body";
constexpr std::string_view k_input_by_pipe = "pipe";

/// "NAME=value" entries, each ended by NUL.
std::string environment_block(const Command& command) {
  std::string block;
  for (const auto& [name, value] : command.environment) {
    block.append(name).append("=").append(value).push_back('\0');
  }
  return block;
}

void read_environment(Command& command, std::string_view block) {
  while (!block.empty()) {
    const std::string_view entry = block.substr(0, block.find('\0'));
    block.remove_prefix(std::min(block.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw BadField("body: an environment entry is not NAME=value");
    }
    command.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
}

/// The body is command, environment and input, one after another.
void read_body(Command& command, const Field& head, std::string_view body) {
  const auto command_bytes = head.at("commandBytes").number(body.size());
  command.command = body.substr(0, command_bytes);
  body.remove_prefix(command_bytes);
  const auto environment_bytes = head.at("environmentBytes").number(body.size());
  read_environment(command, body.substr(0, environment_bytes));
  body.remove_prefix(environment_bytes);
  if (head.at("stdin").text() == k_input_in_body) {
    command.input = body;
  }
}

void add_wait_terms(json& head, const WaitTerms& wait) {
  head["timeoutMs"] = duration_to_json(wait.timeout);
  head["carry"] = wait.carry;
  head["until"] = to_json(wait.until);
}

std::optional<milliseconds> optional_duration(const Field& fields, const char* key) {
  const auto found = fields.find(key);
  return found ? std::optional(duration_from(*found)) : std::nullopt;
}

bool flag_or_false(const Field& fields, const char* key) {
  const auto found = fields.find(key);
  return found && found->flag();
}

}  // namespace

Offsets offsets_from(const Field& field, std::uint64_t max) {
  const auto numbers = field.elements(2);
  if (numbers.size() != 2) {
    field.fail_here();
  }
  return {numbers[0].number(max), numbers[1].number(max)};
}

json duration_to_json(milliseconds duration) {
  return std::clamp(duration, milliseconds::zero(), k_max_duration).count();
}

milliseconds duration_from(const Field& field) {
  return milliseconds(field.number(static_cast<std::uint64_t>(k_max_duration.count())));
}

std::string_view name_of(WaitOutcome outcome) {
  return k_outcomes.at(static_cast<std::size_t>(outcome));
}

std::optional<WaitOutcome> wait_outcome_named(std::string_view name) {
  const auto found = std::find(k_outcomes.begin(), k_outcomes.end(), name);
  return found == k_outcomes.end() ? std::nullopt : std::optional(static_cast<WaitOutcome>(found - k_outcomes.begin()));
}

json to_json(const WaitCondition& until) {
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
    fields["idleMs"] = duration_to_json(*until.idle);
    if (until.longest_idle) {
      fields["longestIdleMs"] = duration_to_json(*until.longest_idle);
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

WaitCondition WaitCondition::from_json(const Field& until) {
  WaitCondition condition;
  if (const auto known = until.find("known")) {
    condition.known = offsets_from(*known, UINT64_MAX);
  }
  if (const auto pattern = until.find("pattern")) {
    condition.pattern = pattern->text();
    condition.search_from = offsets_from(until.at("from"), UINT64_MAX);
  }
  if (const auto port = until.find("port")) {
    condition.port = static_cast<std::uint16_t>(port->number(UINT16_MAX));
  }
  condition.idle = optional_duration(until, "idleMs");
  if (condition.idle) {
    condition.longest_idle = optional_duration(until, "longestIdleMs");
  }
  condition.input = flag_or_false(until, "input");
  condition.answer = flag_or_false(until, "answer");
  condition.closed = flag_or_false(until, "closed");
  return condition;
}

WaitTerms WaitTerms::from_json(const Field& head) {
  return {duration_from(head.at("timeoutMs")), head.at("carry").number(UINT64_MAX),
          WaitCondition::from_json(head.at("until"))};
}

json to_json(const StartRequest& request) {
  const Command& command = request.command;
  json head = {{"op", name_of(StartRequest::k_operation)},
               {"process", command.id},
               {"cwd", command.cwd},
               {"commandBytes", command.command.size()},
               {"environmentBytes", environment_block(command).size()},
               {"stdin", command.input ? k_input_in_body : k_input_by_pipe},
               {"owner", command.owner},
               {"rationale", command.rationale},
               {"maxRuntimeMs", command.max_runtime.count()}};
  add_wait_terms(head, request.wait);
  if (command.output_limit > 0) {
    head["outputLimit"] = command.output_limit;
  }
  if (command.nice > 0) {
    head["nice"] = command.nice;
  }
  if (command.terminal) {
    head["terminal"] = to_json(*command.terminal);
  }
  if (command.user) {
    head["user"] = *command.user;
  }
  if (request.above > 0) {
    head["above"] = request.above;
  }
  if (!command.call.empty()) {
    head["call"] = command.call;
  }
  return head;
}

std::string body_of(const StartRequest& request) {
  return request.command.command + environment_block(request.command) + request.command.input.value_or("");
}

StartRequest StartRequest::from_json(const Field& head, std::string_view body) {
  StartRequest request;
  Command& command = request.command;
  command.id = process_id_from(head.at("process"));
  read_body(command, head, body);
  command.cwd = head.at("cwd").text();
  command.owner = head.at("owner").text();
  command.rationale = head.at("rationale").text();
  command.max_runtime = milliseconds(head.at("maxRuntimeMs").number(static_cast<std::uint64_t>(k_max_time_ms)));
  if (const auto limit = head.find("outputLimit")) {
    command.output_limit = limit->number(UINT64_MAX);
  }
  if (const auto nice = head.find("nice")) {
    command.nice = static_cast<int>(nice->number(k_max_nice));
  }
  if (const auto terminal = head.find("terminal")) {
    command.terminal = terminal_size_from(*terminal);
  }
  if (const auto user = head.find("user")) {
    command.user = user->text();
  }
  if (const auto call = head.find("call")) {
    command.call = call->text();
  }
  if (const auto above = head.find("above")) {
    request.above = above->number(k_max_process_number);
  }
  request.wait = WaitTerms::from_json(head);
  return request;
}

json to_json(const WaitRequest& request) {
  json head = {{"op", name_of(WaitRequest::k_operation)}};
  if (!request.process.empty()) {
    head["process"] = request.process;
  }
  if (request.owner) {
    head["owner"] = *request.owner;
  }
  if (request.number) {
    head["number"] = *request.number;
  }
  if (!request.processes.empty()) {
    head["processes"] = request.processes;
  }
  add_wait_terms(head, request.wait);
  return head;
}

WaitRequest WaitRequest::from_json(const Field& head) {
  WaitRequest request;
  if (const auto owner = head.find("owner")) {
    request.owner = owner->text();
  }
  if (const auto processes = head.find("processes")) {
    for (const Field& process : processes->elements(k_max_wait_processes)) {
      request.processes.push_back(process_id_from(process));
    }
    if (request.processes.empty()) {
      processes->fail_here();
    }
  } else if (const auto number = head.find("number")) {
    request.number = number->number(k_max_process_number);
    request.owner = head.at("owner").text();
  } else {
    request.process = process_id_from(head.at("process"));
  }
  request.wait = WaitTerms::from_json(head);
  return request;
}

json to_json(const Listener& listener) {
  json fields = {{"pid", listener.pid}, {"command", listener.command}, {"own", listener.is_own}};
  if (!listener.process.empty()) {
    fields["process"] = listener.process;
    fields["number"] = listener.number;
  }
  return fields;
}

Listener Listener::from_json(const Field& field) {
  Listener listener;
  listener.pid = static_cast<std::int64_t>(field.at("pid").number(k_max_pid));
  listener.command = field.at("command").text();
  listener.is_own = field.at("own").flag();
  if (const auto process = field.find("process")) {
    listener.process = process->name(is_process_id);
    listener.number = field.at("number").number(k_max_process_number);
  }
  return listener;
}

json to_json(const WaitAnswer& answer) {
  json head = {{"process", to_json(answer.state)}, {"carried", answer.whole}, {"happened", name_of(answer.happened)}};
  if (answer.searched) {
    head["searched"] = *answer.searched;
  }
  if (answer.happened == WaitOutcome::pattern) {
    head["line"] = answer.line;
  }
  if (!answer.order.empty()) {
    head["order"] = to_json(answer.order);
  }
  if (answer.listener) {
    head["listener"] = to_json(*answer.listener);
  }
  return head;
}

std::string body_of(const WaitAnswer& answer) {
  return answer.out + answer.err;
}

WaitAnswer WaitAnswer::from_json(const Field& head, std::string_view body) {
  WaitAnswer answer;
  answer.state = ProcessState::from_json(head.at("process"));
  answer.happened = head.at("happened").word(wait_outcome_named);
  if (const auto searched = head.find("searched")) {
    answer.searched = offsets_from(*searched, k_max_stream_bytes);
  }
  if (const auto line = head.find("line")) {
    answer.line = line->text();
  }
  if (const auto order = head.find("order")) {
    answer.order = write_order_from(*order);
  }
  if (const auto listener = head.find("listener")) {
    answer.listener = Listener::from_json(*listener);
  }
  const Field carried = head.at("carried");
  answer.whole = carried.flag();
  if (answer.whole) {
    const std::uint64_t out = answer.state.out.total;
    if (out > body.size() || body.size() - out != answer.state.err.total) {
      carried.fail_here();
    }
    answer.out = body.substr(0, out);
    answer.err = body.substr(out);
  }
  return answer;
}

}  // namespace dockbridge::wire
