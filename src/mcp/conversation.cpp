#include "mcp/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "mcp/call.hpp"
#include "util/json_memory.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_batch = 100;
constexpr milliseconds k_client_patience{600'000};
constexpr std::size_t k_max_capabilities_bytes = 64UL * 1024;
constexpr std::size_t k_max_uri_bytes = 16UL * 1024;
constexpr std::size_t k_max_client_name = 100;

std::string next_session() {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("session {}", ++counter);
}

}  // namespace

json meta_field(const json& params, const char* name) {
  const auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) {
    return nullptr;
  }
  const auto field = meta->find(name);
  return field == meta->end() ? json(nullptr) : *field;
}

Representation requested_representation(const json& params, Representation usual) {
  const json asked = meta_field(params, k_meta_structured);
  return asked.is_boolean() ? (asked.get<bool>() ? Representation::structured : Representation::text) : usual;
}

std::string name_of_client(const json& client_info) {
  const auto name = client_info.is_object() ? text_param(client_info, "name") : std::nullopt;
  return printable_line(name.value_or(""), k_max_client_name);
}

bool usable_capabilities(const json& capabilities) {
  return capabilities.is_object() && json_heap_bytes(capabilities) <= k_max_capabilities_bytes;
}

std::optional<std::string> text_param(const json& params, const char* name) {
  const auto found = params.find(name);
  return found != params.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

bool Peer::follows_tasks() const {
  if (!is_stateless(revision)) {
    return revision == Revision::v2025_11_25;
  }
  const auto extensions = capabilities.find("extensions");
  return extensions != capabilities.end() && extensions->is_object() && extensions->contains(k_tasks_extension);
}

std::shared_ptr<Conversation> Conversation::begin(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing) {
  return std::shared_ptr<Conversation>(new Conversation(hub, std::move(caller), std::move(standing)));
}

Conversation::Conversation(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing)
    : m_hub(hub),
      m_server(hub.server),
      m_caller(std::move(caller)),
      m_session(next_session()),
      m_standing(std::move(standing)),
      m_log_from(hub.server.info().unasked_log) {}

Conversation::~Conversation() {
  m_ticket = nullptr;
  for (auto& [id, listening] : m_listening) {
    listening->ticket = nullptr;
    listening->reply.silence();
  }
}

std::optional<Revision> Conversation::negotiated() const {
  const std::lock_guard lock(m_mutex);
  return m_negotiated;
}

Conversation::Calls Conversation::receive(std::string_view text, const std::shared_ptr<ReplySink>& sink) {
  auto parsed = parse_json(text);
  if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
    sink->answer(error_message(malformed->id, malformed->code, malformed->reason), {});
    return {};
  }
  return receive(std::move(std::get<json>(parsed)), sink);
}

Conversation::Calls Conversation::receive(json value, const std::shared_ptr<ReplySink>& sink) {
  if (value.is_array() && negotiated() == Revision::v2025_03_26) {
    return receive_batch(std::move(value), sink);
  }
  auto call = dispatch(to_message(std::move(value)), sink);
  return call ? Calls{std::move(call)} : Calls{};
}

void Conversation::refuse(const Malformed& malformed) {
  m_standing->answer(error_message(malformed.id, malformed.code, malformed.reason), {});
}

Conversation::Calls Conversation::receive_batch(json batch, const std::shared_ptr<ReplySink>& sink) {
  if (batch.empty() || batch.size() > k_max_batch) {
    sink->answer(
        error_message(nullptr, k_invalid_request, fmt::format("A batch must have 1 to {} messages", k_max_batch)), {});
    return {};
  }
  std::vector<Message> messages;
  for (json& entry : batch) {
    Message message = to_message(std::move(entry));
    if (const auto* request = std::get_if<Request>(&message); request != nullptr && request->method == "initialize") {
      message = Malformed{request->id, k_invalid_request, "initialize cannot be part of a batch"};
    }
    messages.push_back(std::move(message));
  }
  const auto answered = std::count_if(messages.begin(), messages.end(), [](const Message& message) {
    return std::holds_alternative<Request>(message) || std::holds_alternative<Malformed>(message);
  });
  if (answered == 0) {
    sink->nothing();
  }
  const auto answers = std::make_shared<BatchSink>(static_cast<std::size_t>(answered), sink);
  Calls calls;
  for (Message& message : messages) {
    if (auto call = dispatch(std::move(message), answers)) {
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

std::shared_ptr<Call> Conversation::dispatch(Message message, const std::shared_ptr<ReplySink>& sink) {
  if (auto* request = std::get_if<Request>(&message)) {
    Reply reply(request->id, sink);
    return handle_request(std::move(*request), std::move(reply));
  }
  if (const auto* notification = std::get_if<Notification>(&message)) {
    handle_notification(*notification);
  } else if (auto* answer = std::get_if<Answer>(&message)) {
    handle_answer(std::move(*answer));
  } else if (const auto* malformed = std::get_if<Malformed>(&message)) {
    sink->answer(error_message(malformed->id, malformed->code, malformed->reason), {});
  }
  return nullptr;
}

std::shared_ptr<Call> Conversation::handle_request(Request request, Reply reply) {
  const json version = meta_field(request.params, k_meta_version);
  if (!version.is_null()) {
    const auto peer = stateless_peer(request, version, reply);
    return peer ? handle(request, *peer, std::move(reply)) : nullptr;
  }
  if (request.method == "server/discover") {
    reply.error(k_invalid_params, fmt::format("server/discover needs params._meta with '{}' and '{}'", k_meta_version,
                                              k_meta_capabilities));
    return nullptr;
  }
  Peer peer;
  {
    const std::lock_guard lock(m_mutex);
    peer = {m_negotiated.value_or(k_newest_handshake), m_capabilities, m_log_from, m_client_name};
  }
  return handle(request, peer, std::move(reply));
}

std::optional<Peer> Conversation::stateless_peer(const Request& request, const json& version, Reply& reply) {
  if (!version.is_string()) {
    reply.error(k_invalid_params, fmt::format("_meta['{}'] must be a string", k_meta_version));
    return std::nullopt;
  }
  if (version != name_of(Revision::v2026_07_28)) {
    reply.error(k_unsupported_version, "Unsupported protocol version",
                {{"supported", {name_of(Revision::v2026_07_28)}}, {"requested", version}});
    return std::nullopt;
  }
  const json& meta = request.params.at("_meta");
  const auto capabilities = meta.find(k_meta_capabilities);
  if (capabilities == meta.end() || !usable_capabilities(*capabilities)) {
    reply.error(k_invalid_params, fmt::format("_meta['{}'] is required: an object of at most {} KiB",
                                              k_meta_capabilities, k_max_capabilities_bytes / 1024));
    return std::nullopt;
  }
  Peer peer{Revision::v2026_07_28, *capabilities, {}, name_of_client(meta_field(request.params, k_meta_client_info))};
  if (const json level = meta_field(request.params, k_meta_log_level); level.is_string()) {
    peer.log_from = log_severity(level.get<std::string>());
  }
  return peer;
}

std::shared_ptr<Call> Conversation::handle(Request& request, const Peer& peer, Reply reply) {
  const auto found = methods().find(request.method);
  const bool known =
      found != methods().end() && (is_stateless(peer.revision) ? found->second.stateless : found->second.handshake);
  if (!known) {
    reply.error(k_method_not_found, "Method not found: " + printable_line(request.method, 100));
    return nullptr;
  }
  return (this->*found->second.handle)(request, peer, std::move(reply));
}

void Conversation::handle_notification(const Notification& notification) {
  const auto id = notification.params.find("requestId");
  if (notification.method != "notifications/cancelled" || id == notification.params.end()) {
    return;
  }
  const bool timed_out =
      m_hub.is_client_timeout && m_hub.is_client_timeout(text_param(notification.params, "reason").value_or(""));
  std::shared_ptr<Listening> listening;
  {
    const std::lock_guard lock(m_mutex);
    if (const auto call = m_calls.find(*id); call != m_calls.end()) {
      call->second->interrupt(timed_out ? StopReason::timed_out : StopReason::cancelled);
    }
    if (const auto found = m_listening.find(*id); found != m_listening.end()) {
      listening = std::move(found->second);
      m_listening.erase(found);
    }
  }
  if (listening) {
    listening->ticket = nullptr;
    listening->reply.silence();
  }
}

void Conversation::handle_answer(Answer answer) {
  const std::lock_guard lock(m_mutex);
  if (const auto question = m_questions.find(answer.id); question != m_questions.end()) {
    question->second = std::move(answer.message);
    m_answered.notify_all();
  }
}

Result<json> Conversation::ask(const json& requests, ReplySink& sink, const std::stop_token& stop) {
  std::map<std::string, json> ids;
  std::unique_lock lock(m_mutex);
  for (const auto& [name, request] : requests.items()) {
    ids[name] = fmt::format("ask-{}", m_next_question++);
    m_questions[ids[name]] = std::nullopt;
  }
  lock.unlock();
  for (const auto& [name, request] : requests.items()) {
    sink.tell(request_message(ids[name], request.at("method").get<std::string>(), request.at("params")));
  }
  lock.lock();
  const auto all_there = [&] {
    return std::all_of(ids.begin(), ids.end(),
                       [&](const auto& entry) { return m_questions[entry.second].has_value(); });
  };
  const bool answered = m_answered.wait_until(lock, stop, Deadline::after(k_client_patience).time(), all_there);
  json answers = json::object();
  std::optional<Error> error;
  for (const auto& [name, id] : ids) {
    const auto answer = m_questions[id];
    m_questions.erase(id);
    if (answer && answer->contains("result")) {
      answers[name] = answer->at("result");
    } else if (answer) {
      const json complaint = answer->value("error", json::object());
      error = {ErrorCode::client_refused,
               "The client refused: " + (complaint.is_object() ? complaint.value("message", "no reason given") : "")};
    }
  }
  if (!answered) {
    return fail(ErrorCode::client_silent, "The client did not answer");
  }
  return error ? Result<json>(fail(*error)) : Result<json>(std::move(answers));
}

bool Conversation::may_use(const std::string& tool) const {
  return m_caller.may_use(tool) && m_server.find_tool(tool) != nullptr;
}

Visible Conversation::visible_tools() const {
  return m_caller.tools ? Visible([this](const std::string& tool) { return may_use(tool); }) : Visible();
}

bool Conversation::may_read(const std::string& uri) const {
  if (m_server.resources() == nullptr || uri.size() > k_max_uri_bytes) {
    return false;
  }
  if (m_server.find_skill(uri) != nullptr) {
    return visible_skill(uri) != nullptr;
  }
  const std::string tool = m_server.resources()->tool_for(uri);
  return tool.empty() || may_use(tool);
}

Visible Conversation::visible_uris() const {
  return m_caller.tools ? Visible([this](const std::string& uri) { return may_read(uri); }) : Visible();
}

bool Conversation::is_running(const json& id) {
  const std::lock_guard lock(m_mutex);
  return m_calls.contains(id) || m_listening.contains(id);
}

void Conversation::follow_task(const std::string& id) {
  const std::lock_guard lock(m_mutex);
  m_own_tasks.insert(id);
}

/// What a client of the handshake era is told without having asked in each case.
void Conversation::hear(const Notice& notice) {
  json message;
  {
    const std::lock_guard lock(m_mutex);
    switch (notice.kind) {
      case Notice::Kind::tools_changed:
        message = notification_message("notifications/tools/list_changed", json::object());
        break;
      case Notice::Kind::prompts_changed:
        message = notification_message("notifications/prompts/list_changed", json::object());
        break;
      case Notice::Kind::resources_changed:
        message = notification_message("notifications/resources/list_changed", json::object());
        break;
      case Notice::Kind::resource_updated:
        if (m_watched.contains(notice.subject) && (notice.owner.empty() || notice.owner == m_caller.owner)) {
          message = notification_message("notifications/resources/updated", {{"uri", notice.subject}});
        }
        break;
      case Notice::Kind::task_changed:
        if (m_own_tasks.contains(notice.subject)) {
          message = notification_message("notifications/tasks/status", notice.handshake_task);
        }
        break;
    }
  }
  if (!message.is_null()) {
    m_standing->tell(message);
  }
}

void Conversation::interrupt_calls(StopReason reason) {
  const std::lock_guard lock(m_mutex);
  for (Interruption* interruption : m_running) {
    interruption->interrupt(reason);
  }
}

bool Conversation::wait_for_calls(Deadline deadline) {
  std::unique_lock lock(m_mutex);
  return m_call_ended.wait_until(lock, deadline.time(), [&] { return m_running.empty(); });
}

void Conversation::end_listening() {
  std::map<json, std::shared_ptr<Listening>> ended;
  {
    const std::lock_guard lock(m_mutex);
    ended.swap(m_listening);
  }
  for (auto& [id, listening] : ended) {
    listening->ticket = nullptr;
    json result = m_server.finished(json::object(), Revision::v2026_07_28);
    result["_meta"][k_meta_subscription] = id;
    listening->reply.result(std::move(result));
  }
}

}  // namespace dockbridge::mcp
