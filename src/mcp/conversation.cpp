#include "mcp/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "mcp/call.hpp"
#include "mcp/methods.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_batch = 100;

std::string next_session() {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("session {}", ++counter);
}

}  // namespace

std::shared_ptr<Conversation> Conversation::begin(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing) {
  return std::shared_ptr<Conversation>(new Conversation(hub, std::move(caller), std::move(standing)));
}

Conversation::Conversation(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing)
    : m_client(hub, std::move(caller), next_session(), std::move(standing)) {}

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
  m_client.standing->answer(error_message(malformed.id, malformed.code, malformed.reason), {});
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
    sink->end_without_reply();
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
    m_client.questions.take_answer(std::move(*answer));
  } else if (const auto* malformed = std::get_if<Malformed>(&message)) {
    sink->answer(error_message(malformed->id, malformed->code, malformed->reason), {});
  }
  return nullptr;
}

std::shared_ptr<Call> Conversation::handle_request(Request request, Reply reply) {
  const json version = meta_field(request.params, k_meta_version);
  if (!version.is_null()) {
    const auto peer = stateless_peer(request.params, version);
    if (!peer) {
      reply.error(peer.error().code, peer.error().message, peer.error().data);
      return nullptr;
    }
    return serve(request, *peer, std::move(reply));
  }
  if (request.method == "server/discover") {
    reply.error(k_invalid_params, fmt::format("server/discover needs params._meta with '{}' and '{}'", k_meta_version,
                                              k_meta_capabilities));
    return nullptr;
  }
  return serve(request, m_client.handshake.peer(), std::move(reply));
}

std::shared_ptr<Call> Conversation::serve(Request& request, const Peer& peer, Reply reply) {
  const MethodHandler handler = find_method(request.method, peer.revision);
  if (handler == nullptr) {
    reply.error(k_method_not_found, "Method not found: " + printable_line(request.method, 100));
    return nullptr;
  }
  return handler(ClientPtr(shared_from_this(), &m_client), request, peer, std::move(reply));
}

void Conversation::handle_notification(const Notification& notification) {
  const auto id = notification.params.find("requestId");
  if (notification.method != "notifications/cancelled" || id == notification.params.end()) {
    return;
  }
  const auto& is_client_timeout = m_client.hub.is_client_timeout;
  const bool timed_out = is_client_timeout && is_client_timeout(text_param(notification.params, "reason").value_or(""));
  m_client.calls.interrupt(*id, timed_out ? StopReason::timed_out : StopReason::cancelled);
  m_client.listeners.cancel(*id);
}

}  // namespace dockbridge::mcp
