#include "mcp/transport/http/front.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/transport/http/stateless_headers.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr const char* k_path = "/mcp";

Response error_response(int status, int code, const std::string& message, const json& id = nullptr,
                        json data = nullptr) {
  Response response;
  response.status = status;
  response.body = dump(error_message(id, code, message, std::move(data)));
  return response;
}

Response refused(int status, const std::string& message, const json& id = nullptr) {
  Response response = error_response(status, k_invalid_request, message, id);
  response.refusal = std::to_string(status);
  return response;
}

Response refused_message(const Malformed& malformed) {
  Response response = error_response(400, malformed.code, malformed.reason);
  if (malformed.kind == Malformed::Kind::too_large) {
    response.status = 413;
    response.refusal = "413";
  } else if (malformed.kind == Malformed::Kind::no_room) {
    response.status = 503;
    response.refusal = "503";
    response.headers.emplace_back("Retry-After", "1");
  }
  return response;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

/// HTTP status for a body that could not be read.
int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::too_slow:
      return 408;
    case ErrorCode::busy:
      return 503;
    default:
      return 411;
  }
}

bool is_json(const Request& request) {
  constexpr std::string_view k_json = "application/json";
  const std::string type = request.header("Content-Type").value_or("");
  const bool begins_so = type.size() >= k_json.size() &&
                         std::equal(k_json.begin(), k_json.end(), type.begin(),
                                    [](char wanted, unsigned char given) { return wanted == std::tolower(given); });
  const std::size_t rest = begins_so ? type.find_first_not_of(" \t", k_json.size()) : 0;
  return begins_so && (rest == std::string::npos || type[rest] == ';');
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

/// What the bodies of all owners may have together; each may have half, so that another finds room.
std::size_t joint_bodies(const Limits& limits) {
  return std::max(limits.bodies_bytes, 2 * MessageMemory::room_for(limits.body_bytes));
}

bool is_handshake_version(const std::string& version) {
  return version == name_of(negotiate(version));
}

}  // namespace

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
      m_calls(limits.calls_per_owner),
      m_health_requests(limits.health_requests),
      m_rate(limits.rate_per_owner),
      m_bodies(joint_bodies(limits), joint_bodies(limits) / 2) {}

Response Front::handle(Request& request) {
  auto refusal = refuse_at_the_door(request);
  Response response = refusal                  ? std::move(*refusal)
                      : request.path == k_path ? serve_mcp(request)
                                               : serve_health(request);
  if (!response.refusal.empty()) {
    m_hub.metrics.count_refusal(response.refusal);
  }
  return response;
}

std::optional<Response> Front::refuse_at_the_door(const Request& request) {
  if (m_stopping) {
    Response response = refused(503, "The server is stopping");
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
    return refused(411, "The request needs a Content-Length");
  }
  if (request.count("Content-Encoding") > 0) {
    return refused(415, "A Content-Encoding is not supported");
  }
  return std::nullopt;
}

Response Front::serve_health(const Request& request) {
  const bool known = request.path == "/healthz" || request.path == "/readyz" || request.path == "/metrics";
  if (!known) {
    return refused(404, "Not found. MCP is at /mcp");
  }
  if (request.method != "GET") {
    return refused(405, "only GET");
  }
  // Without a token these paths only report. Any local process, a page in a local browser or a client behind a proxy
  // can request them, and none of these may change anything.
  const auto caller = m_access.admit(request.header("Authorization"), request.client.address(), Clock::now());
  if (!caller && !is_loopback(request.client.address())) {
    return refused(caller.error().status, "A bearer token is required");
  }
  const bool has_token = caller && !m_access.open();
  // These paths wait for the agent or the engine. Many such requests would take the connections of other clients.
  const auto claim = has_token ? nullptr : m_health_requests.claim("");
  if (!has_token && !claim) {
    return too_many("health requests");
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
    const auto ready = m_health.ready ? m_health.ready(has_token) : Result<json>(json{{"status", "ok"}});
    response.status = ready ? 200 : 503;
    response.body = dump(ready ? *ready : json{{"status", "not ready"}, {"error", ready.error().sentence()}});
  }
  return response;
}

Response Front::too_many(const char* what) {
  Response response = refused(429, fmt::format("too many {}", what));
  response.refusal = what;
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response Front::serve_mcp(Request& request) {
  auto caller = m_access.admit(request.header("Authorization"), request.client.address(), Clock::now());
  if (!caller) {
    Response response = refused(caller.error().status,
                                caller.error().status == 401 ? "A bearer token is required" : "Too many wrong tokens");
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
    return refused(415, "Content-Type must be application/json");
  }
  if (!request.accepts("application/json") && !request.accepts("text/event-stream")) {
    return refused(406, "Accept must include application/json and text/event-stream");
  }
  const auto claim = m_requests.claim(turn.caller.owner);
  if (!claim) {
    return too_many("requests at a time");
  }
  auto body = request.read_body([&](std::size_t bytes) {
    turn.memory = m_bodies.claim(turn.caller.owner, bytes);
    return turn.memory != nullptr;
  });
  if (!body) {
    const int status = status_of(body.error().code);
    Response response = refused(status, body.error().message);
    if (status == 503) {
      response.headers.emplace_back("Retry-After", "1");
    }
    return response;
  }
  auto parsed = parse_json(*body, [&](std::size_t bytes) { return turn.memory->grow(bytes); });
  if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
    return refused_message(*malformed);
  }
  json message = std::move(std::get<json>(parsed));
  *body = std::string();  // the call may take long
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
    return error_response(400, k_header_mismatch, "Header MCP-Protocol-Version does not match the body",
                          id_of(message));
  }
  if (message.contains("id") && version == name_of(Revision::v2026_07_28)) {
    if (const auto wrong = header_mismatch(turn.request, message, m_hub.server)) {
      return error_response(400, k_header_mismatch, *wrong, id_of(message));
    }
  }
  const json& meta = message["params"]["_meta"];
  const auto capabilities = meta.find(k_meta_capabilities);
  turn.envelope_complete = capabilities != meta.end() && usable_capabilities(*capabilities);
  turn.outbox = std::make_shared<Outbox>();
  turn.conversation = Conversation::begin(m_hub, turn.caller, turn.outbox);
  return exchange(turn, std::move(message));
}

Response Front::initialize(Turn& turn, json message) {
  turn.session = m_sessions.create(turn.caller);
  if (!turn.session) {
    Response response = refused(503, "too many sessions for this token");
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
    return refused(400, "Header Mcp-Session-Id is required after initialize", id_of(message));
  }
  turn.session = m_sessions.find(*id, turn.caller.owner);
  if (!turn.session) {
    return refused(404, "Session not found. Initialize again", id_of(message));
  }
  turn.conversation = turn.session->conversation();
  turn.outbox = turn.session->new_stream();
  return exchange(turn, std::move(message));
}

Response Front::get(Turn& turn) {
  if (!turn.request.accepts("text/event-stream")) {
    return refused(406, "Accept must include text/event-stream");
  }
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return refused(400, "Header Mcp-Session-Id is required");
  }
  turn.session = m_sessions.find(*id, turn.caller.owner);
  if (!turn.session) {
    return refused(404, "Session not found. Initialize again");
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
    return refused(400, "Header Mcp-Session-Id is required");
  }
  if (!m_sessions.find(*id, turn.caller.owner)) {
    return refused(404, "Session not found");
  }
  m_sessions.remove(*id);
  Response response;
  response.status = 204;
  return response;
}

}  // namespace dockbridge::mcp::http
