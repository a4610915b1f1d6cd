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

Conversation::Conversation(const Server& server, WorkerPool& pool, Log& log, std::string owner, Send send)
    : m_server(server),
      m_pool(pool),
      m_log(log),
      m_owner(std::move(owner)),
      m_sink(std::make_shared<DirectSink>(std::move(send))) {}

Conversation::~Conversation() {
  detach_calls();
  std::unique_lock lock(m_mutex);
  m_call_ended.wait(lock, [&] { return m_running == 0; });
}

void Conversation::receive(std::string_view text) {
  auto parsed = parse_json(text);
  if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
    refuse(*malformed);
    return;
  }
  json& value = std::get<json>(parsed);
  if (value.is_array() && m_negotiated == Revision::v2025_03_26) {
    receive_batch(std::move(value));
    return;
  }
  dispatch(to_message(std::move(value)), m_sink);
}

void Conversation::refuse(const Malformed& malformed) {
  m_sink->answer(error_message(malformed.id, malformed.code, malformed.reason));
}

void Conversation::receive_batch(json batch) {
  if (batch.empty() || batch.size() > k_max_batch) {
    refuse({nullptr, k_invalid_request, fmt::format("a batch has to hold 1 to {} messages", k_max_batch)});
    return;
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
  for (Message& message : messages) {
    dispatch(std::move(message), sink);
  }
}

void Conversation::dispatch(Message message, const std::shared_ptr<ReplySink>& sink) {
  if (auto* request = std::get_if<Request>(&message)) {
    Reply reply(request->id, sink);
    handle_request(std::move(*request), std::move(reply));
  } else if (const auto* notification = std::get_if<Notification>(&message)) {
    handle_notification(*notification);
  } else if (const auto* malformed = std::get_if<Malformed>(&message)) {
    sink->answer(error_message(malformed->id, malformed->code, malformed->reason));
  }
}

void Conversation::handle_request(Request request, Reply reply) {
  const json version = meta_field(request.params, k_meta_version);
  if (version.is_null()) {
    handle_handshake_era(request, std::move(reply));
  } else {
    handle_stateless(request, std::move(reply), version);
  }
}

void Conversation::handle_stateless(Request& request, Reply reply, const json& version) {
  if (!version.is_string()) {
    reply.error(k_invalid_params, fmt::format("_meta['{}'] has to be a string", k_meta_version));
    return;
  }
  if (version != name_of(Revision::v2026_07_28)) {
    reply.error(k_unsupported_version, "unsupported protocol version",
                {{"supported", {name_of(Revision::v2026_07_28)}}, {"requested", version}});
    return;
  }
  if (!meta_field(request.params, k_meta_capabilities).is_object()) {
    reply.error(k_invalid_params, fmt::format("_meta['{}'] is required and has to be an object", k_meta_capabilities));
    return;
  }
  if (request.method == "server/discover") {
    reply.result(m_server.discover_result());
  } else if (request.method == "tools/list") {
    reply.result(m_server.tools_list_result(Revision::v2026_07_28));
  } else if (request.method == "tools/call") {
    call_tool(std::move(request), std::move(reply), Revision::v2026_07_28);
  } else {
    reply.error(k_method_not_found, "unknown method: " + printable_line(request.method, 100));
  }
}

void Conversation::handle_handshake_era(Request& request, Reply reply) {
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
    call_tool(std::move(request), std::move(reply), revision);
  } else {
    reply.error(k_method_not_found, "unknown method: " + printable_line(request.method, 100));
  }
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

void Conversation::call_tool(Request request, Reply reply, Revision revision) {
  const auto name = request.params.find("name");
  if (name == request.params.end() || !name->is_string()) {
    reply.error(k_invalid_params, "tools/call needs a 'name' that is a string");
    return;
  }
  const Tool* tool = m_server.find_tool(name->get<std::string>());
  if (tool == nullptr) {
    reply.error(k_invalid_params, "unknown tool: " + printable_line(name->get<std::string>(), 100));
    return;
  }
  const auto given = request.params.find("arguments");
  json arguments = given == request.params.end() || given->is_null() ? json::object() : std::move(*given);
  if (!arguments.is_object()) {
    reply.error(k_invalid_params, "'arguments' has to be an object");
    return;
  }
  auto interruption = std::make_shared<Interruption>();
  {
    const std::lock_guard lock(m_mutex);
    if (!m_calls.emplace(request.id, interruption).second) {
      reply.error(k_invalid_request, "a request with this id is still running");
      return;
    }
    ++m_running;
  }
  json progress_token = meta_field(request.params, "progressToken");
  // The pool takes jobs that can be copied, and a reply cannot be.
  auto shared_reply = std::make_shared<Reply>(std::move(reply));
  const bool taken = m_pool.submit([this, tool, revision, interruption, shared_reply, id = request.id,
                                    arguments = std::move(arguments), progress_token = std::move(progress_token)] {
    ToolResult result = run_tool(*tool, arguments, progress_token, *interruption);
    end_call(id);
    if (interruption->reason() == StopReason::cancelled) {
      shared_reply->silence();
    } else {
      shared_reply->result(m_server.call_result(std::move(result), revision));
    }
    const std::lock_guard lock(m_mutex);
    --m_running;
    m_call_ended.notify_all();
  });
  if (!taken) {
    end_call(request.id);
    {
      const std::lock_guard lock(m_mutex);
      --m_running;
    }
    shared_reply->result(
        m_server.call_result(error_result({"too_many_calls", "too many calls are running at once",
                                           "Wait for some of them, or start long commands with background: true"}),
                             revision));
  }
}

/// Before the answer goes out, so that the client may use the id again as soon as it has it.
void Conversation::end_call(const json& id) {
  const std::lock_guard lock(m_mutex);
  m_calls.erase(id);
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
