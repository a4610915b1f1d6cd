#include "mcp/call.hpp"

#include <fmt/format.h>

#include <atomic>

#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

/// A call that still runs after this time becomes a task, if its client supports tasks.
constexpr milliseconds k_task_grace{3000};
/// Time limit for a person to answer a question.
constexpr milliseconds k_client_patience{600'000};
constexpr std::size_t k_max_key_bytes = 200;
constexpr std::size_t k_max_trace_length = 100;

std::string next_correlation_id() {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("r{}", ++counter);
}

bool usable_token(const json& token) {
  return token.is_string() || token.is_number_integer();
}

std::string outcome_of(const ToolResult& result, StopReason reason) {
  if (forbids_reply(reason)) {
    return reason == StopReason::cancelled ? "cancelled" : "client_timeout";
  }
  if (result.protocol_error) {
    return "protocol_error";
  }
  if (!result.is_error) {
    return "ok";
  }
  return result.facts.is_object() ? result.facts.value("error", "error") : "error";
}

/// The reply to a repeated call whose result is no longer stored.
ToolResult already_done(const Tool& tool, const OnceOutcome& outcome) {
  const std::string text(outcome.text());
  const std::string how = outcome.is_error() ? fmt::format("failed with {}", text)
                          : text.empty()     ? "succeeded"
                                             : fmt::format("succeeded, {}", text);
  const std::string step = outcome.is_error() ? "The call was not repeated. To try again, use a new key"
                           : tool.annotations.read_only
                               ? "To get the result, call again with a new key"
                               : "The call was not repeated. Read the file or check the process for its state";
  ToolResult result =
      error_result({ErrorCode::already_done, fmt::format("Already done under this key: {} {}", tool.name, how), step});
  result.structured["error"]["outcome"] = {{"isError", outcome.is_error()}, {"text", text}};
  return result;
}

std::string text_of(Refusal::Reason reason) {
  switch (reason) {
    case Refusal::Reason::waited:
      return "Too many concurrent calls; the wait for capacity timed out";
    case Refusal::Reason::queue_full:
      return "Too many concurrent calls, and too many wait already";
    case Refusal::Reason::too_large:
      return "The combined size of concurrent calls exceeds the limit";
    case Refusal::Reason::stopping:
      return "The server is stopping; the call was not made";
  }
  return "";
}

std::string advice_for(const Refusal& refusal) {
  return fmt::format("The call was not made. Retry after {} s{}", refusal.retry_after.count(),
                     refusal.reason == Refusal::Reason::too_large ? ", and send large contents one after the other"
                                                                  : ", and start long commands with background: true");
}

std::string text_field(const json& object, const char* name, std::size_t limit) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? printable_line(found->get<std::string>(), limit) : "";
}

}  // namespace

Call::Call(ClientPtr client, Request request, Peer peer, Reply reply, TaskSupport task_support)
    : m_client(std::move(client)),
      m_request(std::move(request)),
      m_peer(std::move(peer)),
      m_reply(std::move(reply)),
      m_sink(m_reply.sink()),
      m_progress_token(meta_field(m_request.params, "progressToken")),
      m_task_support(task_support) {
  m_client->calls.add(m_request.id, m_interruption);
}

Call::~Call() {
  release_id();
  m_client->calls.remove(m_interruption);
}

void Call::release_id() {
  if (!m_id_released) {
    m_id_released = true;
    m_client->calls.release_id(m_request.id);
  }
}

CallContext Call::context() {
  CallContext context{next_correlation_id(), m_client->caller.owner, *m_interruption};
  context.task_mode = task_mode();
  context.progress_detail = wants_progress() ? ProgressDetail::output : ProgressDetail::none;
  context.report_progress = [this](const std::string& message) { report_progress(message); };
  context.waited = m_waited;
  if (context.task_mode != TaskMode::never) {
    context.handle = handle();
  }
  if (context.task_mode == TaskMode::when_long) {
    context.become_task_if_due = [this](Clock::time_point now) { become_task_if_due(now); };
    context.become_task = [this] { become_task(std::nullopt, Clock::now()); };
  }
  if (m_peer.log_from) {
    context.log = [this](LogSeverity severity, const json& data) {
      if (severity >= *m_peer.log_from && m_sink) {
        m_sink->send(notification_message("notifications/message", {{"level", name_of(severity)}, {"data", data}}));
      }
    };
  }
  if (!is_stateless(m_peer.revision) || context.task_mode == TaskMode::when_long) {
    context.ask = [this](const json& requests) -> Result<json> {
      if (m_task) {
        return m_task->ask(requests, m_interruption->token());
      }
      if (is_stateless(m_peer.revision)) {
        return ::dockbridge::fail(ErrorCode::not_a_task, "Clients of this revision are asked by a result");
      }
      return m_client->questions.ask(requests, *m_sink, m_interruption->token(), Deadline::after(k_client_patience));
    };
  }
  context.hang_up = [this] {
    if (m_sink) {
      m_sink->hang_up();
    }
  };
  context.client_capabilities = m_peer.capabilities;
  if (is_stateless(m_peer.revision)) {
    if (const auto given = m_request.params.find("inputResponses");
        given != m_request.params.end() && given->is_object()) {
      context.input_responses = *given;
    }
    if (const auto given = m_request.params.find("requestState");
        given != m_request.params.end() && given->is_string()) {
      context.request_state = given->get<std::string>();
    }
  }
  context.seal = &hub().seal;
  context.client = is_stateless(m_peer.revision) ? "owner " + context.owner : m_client->session;
  context.client_name = m_peer.client_name;
  if (const Caller& caller = m_client->caller; caller.tools) {
    context.may_use = [&caller](const std::string& tool) { return caller.may_use(tool); };
  }
  return context;
}

const std::string& Call::handle() {
  if (m_handle.empty()) {
    // The idempotency key determines the handle.
    const auto key = idempotency_key(m_request.params);
    m_handle = key ? once_mark(m_client->caller.owner, *key, "").key : new_task_handle();
  }
  return m_handle;
}

TaskMode Call::task_mode() const {
  if (m_task) {
    return TaskMode::from_start;
  }
  // In the handshake revisions the client decides, before the call begins.
  const bool may_become_task =
      m_task_support != TaskSupport::forbidden && is_stateless(m_peer.revision) && m_peer.follows_tasks();
  return may_become_task ? TaskMode::when_long : TaskMode::never;
}

bool Call::wants_progress() const {
  return usable_token(m_progress_token);
}

void Call::report_position(std::size_t position) {
  report_progress(position == 1 ? "waiting for capacity: next to start"
                                : fmt::format("waiting for capacity: position {}", position));
}

void Call::report_progress(const std::string& message) {
  if (m_sink && wants_progress() && m_interruption->reason() == StopReason::none) {
    m_sink->send(
        notification_message("notifications/progress",
                             {{"progressToken", m_progress_token}, {"progress", ++m_progress}, {"message", message}}));
  }
}

void Call::become_task_if_due(Clock::time_point now) {
  if (now - m_began >= k_task_grace) {
    become_task(std::nullopt, now);
  }
}

void Call::become_task(std::optional<milliseconds> ttl, Clock::time_point now) {
  if (m_task || m_interruption->reason() != StopReason::none) {
    return;
  }
  auto task = hub().tasks.create(m_client->caller.owner, ttl, m_interruption, handle(), now);
  if (!task) {
    return;
  }
  m_task = std::move(task);
  release_id();
  if (is_stateless(m_peer.revision)) {
    m_sink = nullptr;  // its stream ends with the answer
    m_reply.result(server().format.finished(m_task->description(), m_peer.revision, "task"));
  } else {
    m_client->subscriptions.follow_task(m_task->id());
    m_reply.result({{"task", m_task->handshake_description()}});
  }
}

void Call::finish(json result, Delivered delivered) {
  release_id();
  if (m_task) {
    // The result stays with the task for its time to live, so its client can fetch it.
    if (m_task->complete(std::move(result), m_tool_failed) && delivered) {
      delivered();
    }
  } else if (forbids_reply(m_interruption->reason())) {
    m_reply.silence();
  } else {
    m_reply.result(std::move(result), std::move(delivered));
  }
}

void Call::fail(const ProtocolError& error) {
  release_id();
  if (m_task) {
    m_task->fail(error);
  } else if (forbids_reply(m_interruption->reason())) {
    m_reply.silence();
  } else {
    m_reply.error(error.code, error.message, error.data);
  }
}

void Call::refuse(const Refusal& refusal) {
  json data = nullptr;
  std::string text = text_of(refusal.reason);
  if (refusal.retry_after.count() > 0) {
    text += fmt::format(". Retry after {} s", refusal.retry_after.count());
    data = {{"retryAfterSeconds", refusal.retry_after.count()}};
  }
  fail({k_internal_error, text, std::move(data)});
}

ToolCall::ToolCall(ClientPtr client, Request request, Peer peer, Reply reply, const Tool& tool, json arguments)
    : Call(std::move(client), std::move(request), std::move(peer), std::move(reply), tool.task_support),
      m_tool(tool),
      m_arguments(std::move(arguments)) {}

void ToolCall::refuse(const Refusal& refusal) {
  if (refusal.reason == Refusal::Reason::stopping) {
    answer(error_result({ErrorCode::server_stopping, text_of(refusal.reason)}));
    return;
  }
  hub().log.warn("call rejected",
                 {{"tool", m_tool.name}, {"owner", m_client->caller.owner}, {"reason", text_of(refusal.reason)}});
  ToolResult result = error_result({ErrorCode::too_many_calls, text_of(refusal.reason), advice_for(refusal)});
  result.facts["retryAfterSeconds"] = refusal.retry_after.count();
  result.structured["error"]["retryAfterSeconds"] = refusal.retry_after.count();
  answer(std::move(result));
}

void ToolCall::make() {
  CallContext known = context();
  const auto key = idempotency_key(m_request.params);
  ToolResult result;
  try {
    result = key ? run_once(known, *key) : run(known);
  } catch (const std::exception& error) {
    result = failed(error, known);
  }
  const auto took = Clock::now() - m_began;
  const std::string outcome = outcome_of(result, m_interruption->reason());
  hub().metrics.count_call(m_tool.name, outcome, took);
  Log::Fields fields = {{"request", known.correlation_id},
                        {"tool", m_tool.name},
                        {"outcome", outcome},
                        {"ms", std::to_string(std::chrono::duration_cast<milliseconds>(took).count())},
                        {"container", result.subject},
                        {"owner", known.owner},
                        {"rationale", text_field(m_arguments, "rationale", 300)}};
  // W3C trace context: which trace of the client's this call belongs to.
  for (const auto& [field, name] : {std::pair("traceparent", "trace"), std::pair("tracestate", "tracestate")}) {
    if (const json trace = meta_field(m_request.params, field); trace.is_string()) {
      fields.emplace_back(name, printable_line(trace.get<std::string>(), k_max_trace_length));
    }
  }
  hub().log.info("call", fields);
  if (known.log && !forbids_reply(m_interruption->reason())) {
    known.log(outcome == "ok" ? LogSeverity::info : LogSeverity::warning,
              {{"event", "call"},
               {"request", known.correlation_id},
               {"tool", m_tool.name},
               {"outcome", outcome},
               {"milliseconds", std::chrono::duration_cast<milliseconds>(took).count()},
               {"container", result.subject}});
  }
  answer(std::move(result));
}

ToolResult ToolCall::run(const CallContext& context) {
  try {
    return m_tool.call(m_arguments, context);
  } catch (const std::exception& error) {
    return failed(error, context);
  }
}

ToolResult ToolCall::failed(const std::exception& error, const CallContext& context) {
  hub().log.error("a tool failed",
                  {{"tool", m_tool.name}, {"request", context.correlation_id}, {"error", error.what()}});
  return error_result({ErrorCode::internal_error, "Unexpected failure of the tool"});
}

ToolResult ToolCall::run_once(CallContext& context, const std::string& key) {
  if (key.size() > k_max_key_bytes) {
    return error_result(
        {ErrorCode::bad_idempotency_key, fmt::format("Idempotency key exceeds {} bytes", k_max_key_bytes)});
  }
  context.once = once_mark(context.owner, key, m_tool.name + dump(m_arguments));
  while (m_interruption->reason() == StopReason::none) {
    const Once::Entered entered = hub().once.enter(context.owner, *context.once, Clock::now());
    switch (entered.state) {
      case Once::Entered::State::first: {
        ToolResult result = run(context);
        const bool ended = m_interruption->reason() == StopReason::none && !result.input_required;
        if (result.effect_complete || ((ended || result.outcome_unknown) && !result.may_be_repeated)) {
          hub().once.finish(*entered.attempt, result, Clock::now());
        } else {
          hub().once.give_up(*entered.attempt);
        }
        return result;
      }
      case Once::Entered::State::running:
        if (const auto result = Once::wait(*entered.attempt, m_interruption->token())) {
          return *result;
        }
        break;
      case Once::Entered::State::finished:
        return *entered.result;
      case Once::Entered::State::forgotten:
        return already_done(m_tool, entered.outcome);
      case Once::Entered::State::conflict:
        return error_result({ErrorCode::idempotency_conflict, "Idempotency key was used for a different call"});
      case Once::Entered::State::full:
        return error_result({ErrorCode::too_many_keys, "Too many idempotency keys within an hour",
                             "Retry later, or call without a key. The call was not made"});
    }
  }
  return error_result({ErrorCode::cancelled, "The call was cancelled"});
}

void ToolCall::answer(ToolResult result) {
  if (result.protocol_error) {
    fail(*result.protocol_error);
    return;
  }
  m_tool_failed = result.is_error;
  Delivered delivered = std::move(result.on_delivered);
  finish(server().format.call_result(std::move(result), m_peer.revision,
                                     requested_representation(m_request.params, server().info.representation)),
         std::move(delivered));
}

void PlainCall::make() {
  try {
    const CallContext known = context();
    auto result = m_work(known);
    if (result) {
      finish(std::move(*result));
    } else {
      fail(result.error());
    }
  } catch (const std::exception& error) {
    hub().log.error("a request failed", {{"method", printable_line(m_request.method, 100)}, {"error", error.what()}});
    fail({k_internal_error, "Unexpected failure of the request", nullptr});
  }
}

}  // namespace dockbridge::mcp
