#include "mcp/transport/http/front.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"
#include "mcp/transport/http/stateless_headers.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr const char* k_path = "/mcp";
constexpr int k_retry_ms = 1000;

Response error_response(int status, int code, const std::string& message, const json& id = nullptr,
                        json data = nullptr) {
  Response response;
  response.status = status;
  response.body = dump(error_message(id, code, message, std::move(data)));
  return response;
}

Response refused(int status, const std::string& message) {
  return error_response(status, k_invalid_request, message);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

bool accepts(const Request& request, std::string_view type) {
  const std::string accept = request.header("Accept").value_or("*/*");
  const std::string_view range = type.substr(0, type.find('/') + 1);
  return accept.find(type) != std::string::npos || accept.find("*/*") != std::string::npos ||
         accept.find(std::string(range) + "*") != std::string::npos;
}

bool is_json(const Request& request) {
  const std::string type = request.header("Content-Type").value_or("");
  return type == "application/json" || type.starts_with("application/json;");
}

json envelope_version(const json& message) {
  const auto params = message.is_object() ? message.find("params") : message.end();
  return message.is_object() && params != message.end() && params->is_object() ? meta_field(*params, k_meta_version)
                                                                               : json(nullptr);
}

json id_of(const json& message) {
  const auto id = message.is_object() ? message.find("id") : message.end();
  const bool usable = message.is_object() && id != message.end() && (id->is_string() || id->is_number_integer());
  return usable ? *id : json(nullptr);
}

bool is_handshake_version(const std::string& version) {
  return version == name_of(negotiate(version));
}

/// The status of an answer of the stateless revision, which tells some errors by it too.
int status_of(const json& answer, bool envelope_complete) {
  const auto error = answer.is_object() ? answer.find("error") : answer.end();
  if (!answer.is_object() || error == answer.end()) {
    return 200;
  }
  switch (error->value("code", 0)) {
    case k_method_not_found:
      return 404;
    case k_parse_error:
    case k_invalid_request:
    case k_header_mismatch:
    case k_missing_capability:
    case k_unsupported_version:
      return 400;
    case k_invalid_params:
      return envelope_complete ? 200 : 400;
    default:
      return 200;
  }
}

std::string event_text(const Outbox& outbox, std::uint64_t number, const std::string& data) {
  const std::string id = outbox.name().empty() ? "" : fmt::format("id: {}-{}\n", outbox.name(), number);
  return fmt::format("{}event: message\ndata: {}\n\n", id, data);
}

/// Lives as long as a response that is a stream. A stateless client that is gone before its end has cancelled the
/// request.
struct Stream {
  Stream(std::shared_ptr<void> the_claim, std::shared_ptr<Conversation> the_conversation,
         std::shared_ptr<Outbox> the_outbox, std::shared_ptr<Session> the_session)
      : claim(std::move(the_claim)),
        conversation(std::move(the_conversation)),
        outbox(std::move(the_outbox)),
        session(std::move(the_session)) {
    if (session) {
      ++session->connections;
    }
  }
  ~Stream() {
    if (session) {
      --session->connections;
      session->touch();
    } else if (!ended) {
      conversation->cancel_calls();
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::shared_ptr<void> claim;
  std::shared_ptr<Conversation> conversation;
  std::shared_ptr<Outbox> outbox;
  std::shared_ptr<Session> session;
  bool ended = false;
};

}  // namespace

struct Front::Turn {
  Request& request;
  Caller caller;
  std::shared_ptr<Conversation> conversation{};
  std::shared_ptr<Outbox> outbox{};
  std::shared_ptr<Session> session{};  ///< handshake era
  bool envelope_complete = true;       ///< stateless
};

Front::Front(Hub& hub, WorkerPool& pool, Limits limits, Access& access, Origins origins, Health health)
    : m_hub(hub),
      m_pool(pool),
      m_limits(limits),
      m_access(access),
      m_origins(std::move(origins)),
      m_health(std::move(health)),
      m_sessions(hub, m_limits),
      m_requests(limits.requests_per_owner),
      m_streams(limits.streams_per_owner),
      m_rate(limits.rate_per_owner) {}

Response Front::handle(Request& request) {
  if (auto refusal = refuse_at_the_door(request)) {
    m_hub.metrics.count_refusal(std::to_string(refusal->status));
    return std::move(*refusal);
  }
  if (request.path == k_path) {
    return serve_mcp(request);
  }
  return serve_health(request);
}

std::optional<Response> Front::refuse_at_the_door(const Request& request) {
  if (m_stopping) {
    Response response = refused(503, "the server is stopping");
    response.headers.emplace_back("Retry-After", "1");
    response.close = true;
    return response;
  }
  const auto host = request.header("Host");
  if (!host || !m_origins.allows_host(*host)) {
    return refused(403, "this Host is not served here; see --allow-host");
  }
  const auto origin = request.header("Origin");
  if (request.count("Origin") > 0 && (!origin || !m_origins.allows_origin(*origin))) {
    return refused(403, "pages of this Origin are not served here; see --allow-origin");
  }
  if (request.count("Transfer-Encoding") > 0) {
    return refused(411, "a request needs a Content-Length");
  }
  if (request.count("Content-Encoding") > 0) {
    return refused(415, "a request's body cannot be encoded");
  }
  return std::nullopt;
}

Response Front::serve_health(const Request& request) {
  const bool known = request.path == "/healthz" || request.path == "/readyz" || request.path == "/metrics";
  if (!known) {
    return refused(404, "there is nothing here; MCP is at /mcp");
  }
  if (request.method != "GET") {
    return refused(405, "only GET");
  }
  if (!is_loopback(request.client.address())) {
    if (const auto caller = m_access.admit(request.header("Authorization"), request.client.address()); !caller) {
      return refused(caller.error().status, "a bearer token is needed");
    }
  }
  Response response;
  if (request.path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4";
    response.body = m_hub.metrics.text();
  } else if (request.path == "/healthz") {
    json live = m_health.live ? m_health.live() : json{{"status", "ok"}};
    live["sessions"] = m_sessions.count();
    response.body = dump(live);
  } else {
    const auto ready = m_health.ready ? m_health.ready() : Result<json>(json{{"status", "ok"}});
    response.status = ready ? 200 : 503;
    response.body = dump(ready ? *ready : json{{"status", "not ready"}, {"error", ready.error().sentence()}});
  }
  return response;
}

Response Front::too_many(const char* what) {
  m_hub.metrics.count_refusal(what);
  Response response = refused(429, fmt::format("too many {}", what));
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response Front::serve_mcp(Request& request) {
  auto caller = m_access.admit(request.header("Authorization"), request.client.address());
  if (!caller) {
    m_hub.metrics.count_refusal(std::to_string(caller.error().status));
    Response response = refused(caller.error().status,
                                caller.error().status == 401 ? "a bearer token is needed" : "too many wrong tokens");
    if (caller.error().retry_after) {
      response.headers.emplace_back("Retry-After", std::to_string(caller.error().retry_after->count()));
    } else {
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
    }
    return response;
  }
  if (!m_rate.allows(caller->owner)) {
    return too_many("requests a second");
  }
  Turn turn{request, std::move(*caller)};
  if (request.method == "POST") {
    return post(turn);
  }
  const bool stateless = request.header("MCP-Protocol-Version") == std::string(name_of(Revision::v2026_07_28));
  if (!stateless && request.method == "GET") {
    return get(turn);
  }
  if (!stateless && request.method == "DELETE") {
    return remove(turn);
  }
  Response response = refused(405, "only POST, and GET and DELETE for sessions");
  response.headers.emplace_back("Allow", "POST, GET, DELETE");
  return response;
}

Response Front::post(Turn& turn) {
  const Request& request = turn.request;
  if (!is_json(request)) {
    return refused(415, "the Content-Type has to be application/json");
  }
  if (!accepts(request, "application/json") && !accepts(request, "text/event-stream")) {
    return refused(406, "the client has to accept application/json and text/event-stream");
  }
  const auto claim = m_requests.claim(turn.caller.owner);
  if (!claim) {
    return too_many("requests at a time");
  }
  const auto body = request.read_body();
  if (!body) {
    const std::string& code = body.error().code;
    const int status = code == "too_large" ? 413 : code == "too_slow" ? 408 : code == "busy" ? 503 : 411;
    Response response = refused(status, body.error().message);
    if (status == 503) {
      response.headers.emplace_back("Retry-After", "1");
    }
    return response;
  }
  auto parsed = parse_json(*body);
  if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
    return error_response(400, malformed->code, malformed->reason);
  }
  json message = std::move(std::get<json>(parsed));
  const json version = envelope_version(message);
  const auto header = request.header("MCP-Protocol-Version");
  const bool modern_header = header && !is_handshake_version(*header);
  const bool initializes = message.is_object() && message.value("method", json()) == "initialize";
  if (!version.is_null()) {
    return post_stateless(turn, std::move(message));
  }
  if (initializes && modern_header) {
    return error_response(400, k_header_mismatch, "initialize belongs to another revision than MCP-Protocol-Version",
                          id_of(message));
  }
  if (modern_header) {
    return error_response(400, k_invalid_params, fmt::format("params._meta needs '{}'", k_meta_version),
                          id_of(message));
  }
  return initializes ? initialize(turn, std::move(message)) : post_handshake(turn, std::move(message));
}

Response Front::post_stateless(Turn& turn, json message) {
  const json version = envelope_version(message);
  const auto header = turn.request.header("MCP-Protocol-Version");
  if (!header || version != *header) {
    return error_response(400, k_header_mismatch, "the header MCP-Protocol-Version has to match the body",
                          id_of(message));
  }
  if (message.contains("id") && version == name_of(Revision::v2026_07_28)) {
    if (const auto wrong = header_mismatch(turn.request, message, m_hub.server)) {
      return error_response(400, k_header_mismatch, *wrong, id_of(message));
    }
  }
  turn.envelope_complete = meta_field(message["params"], k_meta_capabilities).is_object();
  turn.outbox = std::make_shared<Outbox>();
  turn.conversation = Conversation::begin(m_hub, turn.caller, turn.outbox);
  return exchange(turn, std::move(message));
}

Response Front::initialize(Turn& turn, json message) {
  turn.session = m_sessions.create(turn.caller);
  if (!turn.session) {
    Response response = refused(503, "too many sessions");
    response.headers.emplace_back("Retry-After", "60");
    return response;
  }
  turn.conversation = turn.session->conversation();
  turn.outbox = turn.session->new_stream();
  Response response = exchange(turn, std::move(message));
  if (turn.conversation->negotiated()) {
    response.headers.emplace_back("Mcp-Session-Id", turn.session->id());
  } else {
    m_sessions.remove(turn.session->id());
  }
  return response;
}

Response Front::post_handshake(Turn& turn, json message) {
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return error_response(400, k_invalid_request, "the header Mcp-Session-Id is required after initialize",
                          id_of(message));
  }
  turn.session = m_sessions.find(*id, turn.caller.owner);
  if (!turn.session) {
    return error_response(404, k_invalid_request, "there is no such session; initialize again", id_of(message));
  }
  turn.conversation = turn.session->conversation();
  turn.outbox = turn.session->new_stream();
  return exchange(turn, std::move(message));
}

Response Front::get(Turn& turn) {
  if (!accepts(turn.request, "text/event-stream")) {
    return refused(406, "the client has to accept text/event-stream");
  }
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return refused(400, "the header Mcp-Session-Id is required");
  }
  turn.session = m_sessions.find(*id, turn.caller.owner);
  if (!turn.session) {
    return refused(404, "there is no such session; initialize again");
  }
  turn.conversation = turn.session->conversation();
  const auto last = turn.request.header("Last-Event-ID");
  const auto resumed = last ? turn.session->find_event(*last) : std::nullopt;
  turn.outbox = resumed ? resumed->first : turn.session->standing();
  const auto after = resumed ? std::optional(resumed->second) : std::nullopt;
  return events(turn, turn.outbox->attach(turn.request.client.wakeup(), after), /*prime=*/false);
}

Response Front::remove(Turn& turn) {
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return refused(400, "the header Mcp-Session-Id is required");
  }
  if (!m_sessions.find(*id, turn.caller.owner)) {
    return refused(404, "there is no such session");
  }
  m_sessions.remove(*id);
  Response response;
  response.status = 204;
  return response;
}

Response Front::exchange(Turn& turn, json message) {
  const auto calls = turn.conversation->receive(std::move(message), turn.outbox);
  if (calls.empty() && turn.outbox->empty()) {
    Response response;
    response.status = 202;
    return response;
  }
  for (const auto& call : calls) {
    if (!m_pool.submit([call] { call->make(); })) {
      call->refuse();
    }
  }
  return await_answer(turn, !calls.empty());
}

Response Front::await_answer(Turn& turn, bool calls) {
  const auto as_json = [&](const json& answer) {
    Response response;
    response.status = turn.session ? 200 : status_of(answer, turn.envelope_complete);
    response.body = dump(answer);
    return response;
  };
  if (!calls) {
    if (const auto answer = turn.outbox->take_sole_answer()) {
      return as_json(*answer);
    }
  }
  if (!turn.session) {
    remember(turn.conversation);
  }
  Client& client = turn.request.client;
  const bool streams = accepts(turn.request, "text/event-stream");
  const std::uint64_t ticket = turn.outbox->attach(client.wakeup());
  const auto stream_from = Deadline::after(m_limits.keep_alive);
  while (true) {
    const bool hung_up = turn.outbox->hung_up();
    if (!hung_up) {
      if (const auto answer = turn.outbox->take_sole_answer()) {
        return as_json(*answer);
      }
    }
    if (turn.outbox->finished()) {
      Response response;  // cancelled: there is no answer
      response.status = 202;
      return response;
    }
    if (streams && (!turn.outbox->empty() || stream_from.passed())) {
      const bool prime = turn.session && turn.conversation->negotiated() == Revision::v2025_11_25;
      return events(turn, ticket, prime);
    }
    if (!streams && !turn.outbox->empty()) {
      const auto taken = turn.outbox->take(ticket);  // the client cannot be told but the answer
      if (taken.ended && !taken.messages.empty()) {
        return as_json(json::parse(taken.messages.back().second));
      }
    }
    const milliseconds patience = streams ? stream_from.remaining() : m_limits.keep_alive;
    if (client.wait(patience) == Client::Event::gone) {
      if (!turn.session) {
        turn.conversation->cancel_calls();
      }
      Response response;
      response.close = true;
      return response;
    }
  }
}

Response Front::events(Turn& turn, std::uint64_t ticket, bool prime) {
  const auto claim = m_streams.claim(turn.caller.owner);
  if (!claim) {
    if (!turn.session) {
      turn.conversation->cancel_calls();
    }
    return too_many("streams at a time");
  }
  const auto stream = std::make_shared<Stream>(claim, turn.conversation, turn.outbox, turn.session);
  Response response;
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  Client& client = turn.request.client;
  response.events = [this, &client, stream, ticket, prime, first = true]() mutable -> std::optional<std::string> {
    if (std::exchange(first, false)) {
      return prime ? fmt::format("id: {}-0\nretry: {}\ndata: \n\n", stream->outbox->name(), k_retry_ms)
                   : std::string(":\n\n");
    }
    while (true) {
      const auto taken = stream->outbox->take(ticket);
      std::string text;
      for (const auto& [number, data] : taken.messages) {
        text += event_text(*stream->outbox, number, data);
      }
      if (!text.empty()) {
        return text;
      }
      if (taken.ended) {
        stream->ended = true;
        return std::nullopt;
      }
      switch (client.wait(m_limits.keep_alive)) {
        case Client::Event::woken:
          break;
        case Client::Event::gone:
          return std::nullopt;
        case Client::Event::nothing:
          return ":\n\n";
      }
    }
  };
  return response;
}

void Front::remember(const std::shared_ptr<Conversation>& conversation) {
  const std::lock_guard lock(m_mutex);
  m_stateless.remove_if([](const auto& known) { return known.expired(); });
  m_stateless.push_back(conversation);
}

std::vector<std::shared_ptr<Conversation>> Front::conversations() {
  std::vector<std::shared_ptr<Conversation>> all;
  for (const auto& session : m_sessions.all()) {
    all.push_back(session->conversation());
  }
  const std::lock_guard lock(m_mutex);
  for (const auto& known : m_stateless) {
    if (auto conversation = known.lock()) {
      all.push_back(std::move(conversation));
    }
  }
  return all;
}

bool Front::stop(milliseconds finish_patience, milliseconds detach_patience) {
  m_stopping = true;
  const auto all = conversations();
  for (const auto& conversation : all) {
    conversation->end_listening();
  }
  const auto all_return_by = [&](Deadline deadline) {
    return std::all_of(all.begin(), all.end(),
                       [&](const auto& conversation) { return conversation->wait_for_calls(deadline); });
  };
  bool returned = all_return_by(Deadline::after(finish_patience));
  if (!returned) {
    for (const auto& conversation : all) {
      conversation->detach_calls();
    }
    returned = all_return_by(Deadline::after(detach_patience));
  }
  for (const auto& session : m_sessions.all()) {
    session->standing()->close();
  }
  return returned;
}

}  // namespace dockbridge::mcp::http
