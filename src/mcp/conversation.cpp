#include "mcp/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_batch = 100;

std::string next_correlation_id() {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("r{}", ++counter);
}

/// `params._meta[name]`, null if absent.
json meta_field(const json& params, const char* name) {
  const auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) {
    return nullptr;
  }
  const auto field = meta->find(name);
  return field == meta->end() ? json(nullptr) : *field;
}

std::string outcome_of(const ToolResult& result, StopReason reason) {
  if (reason == StopReason::cancelled) {
    return "cancelled";
  }
  if (!result.is_error) {
    return "ok";
  }
  const auto error = result.structured.find("error");
  return error == result.structured.end() ? "error" : error->value("code", "error");
}

}  // namespace

Conversation::Conversation(const Server& server, Log& log, std::string owner, Send send)
    : m_server(server), m_log(log), m_owner(std::move(owner)), m_sink(std::make_shared<DirectSink>(std::move(send))) {}

Conversation::~Conversation() {
  detach_calls();
  std::unique_lock lock(m_mutex);
  m_call_ended.wait(lock, [&] { return m_running == 0; });
}

Conversation::Calls Conversation::receive(std::string_view text) {
  auto parsed = parse_json(text);
  if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
    refuse(*malformed);
    return {};
  }
  json& value = std::get<json>(parsed);
  if (value.is_array() && m_negotiated == Revision::v2025_03_26) {
    return receive_batch(std::move(value));
  }
  auto call = dispatch(to_message(std::move(value)), m_sink);
  return call ? Calls{std::move(call)} : Calls{};
}

void Conversation::refuse(const Malformed& malformed) {
  m_sink->answer(error_message(malformed.id, malformed.code, malformed.reason));
}

Conversation::Calls Conversation::receive_batch(json batch) {
  if (batch.empty() || batch.size() > k_max_batch) {
    refuse({nullptr, k_invalid_request, fmt::format("a batch has to hold 1 to {} messages", k_max_batch)});
    return {};
  }
  std::vector<Message> messages;
  for (json& entry : batch) {
    messages.push_back(to_message(std::move(entry)));
  }
  const auto answered = std::count_if(messages.begin(), messages.end(), [](const Message& message) {
    return std::holds_alternative<Request>(message) || std::holds_alternative<Malformed>(message);
  });
  const auto send = static_cast<const DirectSink&>(*m_sink).send();
  const auto sink = std::make_shared<BatchSink>(static_cast<std::size_t>(answered), send);
  Calls calls;
  for (Message& message : messages) {
    if (auto call = dispatch(std::move(message), sink)) {
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

std::shared_ptr<Conversation::Call> Conversation::dispatch(Message message, const std::shared_ptr<ReplySink>& sink) {
  if (auto* request = std::get_if<Request>(&message)) {
    Reply reply(request->id, sink);
    return handle_request(std::move(*request), std::move(reply));
  }
  if (const auto* notification = std::get_if<Notification>(&message)) {
    handle_notification(*notification);
  } else if (const auto* malformed = std::get_if<Malformed>(&message)) {
    sink->answer(error_message(malformed->id, malformed->code, malformed->reason));
  }
  return nullptr;
}

std::shared_ptr<Conversation::Call> Conversation::handle_request(Request request, Reply reply) {
  const json version = meta_field(request.params, k_meta_version);
  return version.is_null() ? handle_handshake_era(request, std::move(reply))
                           : handle_stateless(request, std::move(reply), version);
}

std::shared_ptr<Conversation::Call> Conversation::handle_stateless(Request& request, Reply reply, const json& version) {
  if (!version.is_string()) {
    reply.error(k_invalid_params, fmt::format("_meta['{}'] has to be a string", k_meta_version));
    return nullptr;
  }
  if (version != name_of(Revision::v2026_07_28)) {
    reply.error(k_unsupported_version, "unsupported protocol version",
                {{"supported", {name_of(Revision::v2026_07_28)}}, {"requested", version}});
    return nullptr;
  }
  if (!meta_field(request.params, k_meta_capabilities).is_object()) {
    reply.error(k_invalid_params, fmt::format("_meta['{}'] is required and has to be an object", k_meta_capabilities));
    return nullptr;
  }
  if (request.method == "server/discover") {
    reply.result(m_server.discover_result());
  } else if (request.method == "tools/list") {
    reply.result(m_server.tools_list_result(Revision::v2026_07_28));
  } else if (request.method == "tools/call") {
    return take_call(std::move(request), std::move(reply), Revision::v2026_07_28);
  } else {
    reply.error(k_method_not_found, "unknown method: " + printable_line(request.method, 100));
  }
  return nullptr;
}

std::shared_ptr<Conversation::Call> Conversation::handle_handshake_era(Request& request, Reply reply) {
  const Revision revision = m_negotiated.value_or(k_newest_handshake);
  if (request.method == "initialize") {
    initialize(request, std::move(reply));
  } else if (request.method == "ping") {
    reply.result(json::object());
  } else if (request.method == "server/discover") {
    reply.error(k_invalid_params, fmt::format("server/discover needs params._meta with '{}' and '{}'", k_meta_version,
                                              k_meta_capabilities));
  } else if (request.method == "tools/list") {
    reply.result(m_server.tools_list_result(revision));
  } else if (request.method == "tools/call") {
    return take_call(std::move(request), std::move(reply), revision);
  } else {
    reply.error(k_method_not_found, "unknown method: " + printable_line(request.method, 100));
  }
  return nullptr;
}

void Conversation::initialize(const Request& request, Reply reply) {
  const auto version = request.params.find("protocolVersion");
  if (version == request.params.end() || !version->is_string()) {
    reply.error(k_invalid_params, "initialize needs a 'protocolVersion' that is a string");
    return;
  }
  m_negotiated = negotiate(*version);
  reply.result(m_server.initialize_result(*m_negotiated));
}

void Conversation::handle_notification(const Notification& notification) {
  if (notification.method != "notifications/cancelled") {
    return;
  }
  const auto id = notification.params.find("requestId");
  if (id == notification.params.end()) {
    return;
  }
  const std::lock_guard lock(m_mutex);
  if (const auto call = m_calls.find(*id); call != m_calls.end()) {
    call->second->interrupt(StopReason::cancelled);
  }
}

std::shared_ptr<Conversation::Call> Conversation::take_call(Request request, Reply reply, Revision revision) {
  const auto name = request.params.find("name");
  if (name == request.params.end() || !name->is_string()) {
    reply.error(k_invalid_params, "tools/call needs a 'name' that is a string");
    return nullptr;
  }
  const Tool* tool = m_server.find_tool(name->get<std::string>());
  if (tool == nullptr) {
    reply.error(k_invalid_params, "unknown tool: " + printable_line(name->get<std::string>(), 100));
    return nullptr;
  }
  const auto given = request.params.find("arguments");
  json arguments = given == request.params.end() || given->is_null() ? json::object() : std::move(*given);
  if (!arguments.is_object()) {
    reply.error(k_invalid_params, "'arguments' has to be an object");
    return nullptr;
  }
  if (is_running(request.id)) {
    reply.error(k_invalid_request, "a request with this id is still running");
    return nullptr;
  }
  json progress_token = meta_field(request.params, "progressToken");
  return std::make_shared<Call>(
      *this, Call::Asked{std::move(request.id), *tool, std::move(arguments), std::move(progress_token), revision},
      std::move(reply));
}

bool Conversation::is_running(const json& id) {
  const std::lock_guard lock(m_mutex);
  return m_calls.contains(id);
}

Conversation::Call::Call(Conversation& conversation, Asked asked, Reply reply)
    : m_conversation(conversation), m_asked(std::move(asked)), m_reply(std::move(reply)) {
  const std::lock_guard lock(m_conversation.m_mutex);
  m_conversation.m_calls.emplace(m_asked.id, &m_interruption);
  ++m_conversation.m_running;
}

Conversation::Call::~Call() {
  const std::lock_guard lock(m_conversation.m_mutex);
  --m_conversation.m_running;
  m_conversation.m_call_ended.notify_all();
}

void Conversation::Call::make() {
  answer(m_conversation.run_tool(m_asked.tool, m_asked.arguments, m_asked.progress_token, m_interruption));
}

void Conversation::Call::refuse() {
  answer(error_result({"too_many_calls", "too many calls are running at once",
                       "Wait for some of them, or start long commands with background: true"}));
}

void Conversation::Call::answer(ToolResult result) {
  {
    // Before the answer goes out, so that the client may use the id again as soon as it has it.
    const std::lock_guard lock(m_conversation.m_mutex);
    m_conversation.m_calls.erase(m_asked.id);
  }
  if (m_interruption.reason() == StopReason::cancelled) {
    m_reply.silence();
  } else {
    m_reply.result(m_conversation.m_server.call_result(std::move(result), m_asked.revision));
  }
}

ToolResult Conversation::run_tool(const Tool& tool, const json& arguments, const json& progress_token,
                                  const Interruption& interruption) {
  const auto began = Clock::now();
  CallContext context{next_correlation_id(), m_owner, interruption, {}};
  if (progress_token.is_string() || progress_token.is_number_integer()) {
    // The sink of single messages, also within a batch: progress is no answer.
    context.report_progress = [&, steps = 0](const std::string& message) mutable {
      if (interruption.reason() != StopReason::none) {
        return;
      }
      m_sink->answer({{"jsonrpc", "2.0"},
                      {"method", "notifications/progress"},
                      {"params", {{"progressToken", progress_token}, {"progress", ++steps}, {"message", message}}}});
    };
  }
  ToolResult result;
  try {
    result = tool.call(arguments, context);
  } catch (const std::exception& error) {
    m_log.error("a tool failed", {{"tool", tool.name}, {"request", context.correlation_id}, {"error", error.what()}});
    result = error_result({"internal_error", "the tool failed in an unexpected way", "See the server's log"});
  }
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - began).count();
  const auto rationale = arguments.find("rationale");
  m_log.info("call", {{"request", context.correlation_id},
                      {"tool", tool.name},
                      {"outcome", outcome_of(result, interruption.reason())},
                      {"ms", std::to_string(took)},
                      {"container", result.subject},
                      {"owner", m_owner},
                      {"rationale", rationale != arguments.end() && rationale->is_string()
                                        ? printable_line(rationale->get<std::string>(), 300)
                                        : ""}});
  return result;
}

void Conversation::detach_calls() {
  const std::lock_guard lock(m_mutex);
  for (auto& [id, interruption] : m_calls) {
    interruption->interrupt(StopReason::detached);
  }
}

bool Conversation::wait_for_calls(Deadline deadline) {
  std::unique_lock lock(m_mutex);
  return m_call_ended.wait_until(lock, deadline.time(), [&] { return m_running == 0; });
}

}  // namespace dockbridge::mcp
