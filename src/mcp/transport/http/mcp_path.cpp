#include "mcp/transport/http/mcp_path.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/transport/http/refusal.hpp"
#include "mcp/transport/http/stateless_headers.hpp"

namespace dockbridge::mcp::http {

namespace {

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

/// Memory for the bodies of all owners. Each owner may use half, so that another finds room.
std::size_t joint_bodies(const Limits& limits) {
  return std::max(limits.bodies_bytes, 2 * MessageMemory::room_for(limits.body_bytes));
}

bool is_handshake_version(const std::string& version) {
  return version == name_of(negotiate(version));
}

}  // namespace

McpPath::McpPath(Hub& hub, CallScheduler& scheduler, const Limits& limits, Access& access, Sessions& sessions)
    : m_hub(hub),
      m_access(access),
      m_sessions(sessions),
      m_scheduler(scheduler),
      m_requests(limits.requests_per_owner),
      m_rate(limits.rate_per_owner),
      m_bodies(joint_bodies(limits), joint_bodies(limits) / 2),
      m_exchange(scheduler, limits) {}

Response McpPath::serve(Request& request) {
  const Clock::time_point now = Clock::now();
  auto caller = m_access.admit(request.header("Authorization"), request.client.address(), now);
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
  if (!m_rate.allows(caller->owner, now)) {
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

Response McpPath::post(Turn& turn) {
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
      m_scheduler.note_size_rejection();
      response.headers.emplace_back("Retry-After", "1");
    }
    return response;
  }
  auto parsed = parse_json(*body, [&](std::size_t bytes) { return turn.memory->grow(bytes); });
  if (const auto* malformed = std::get_if<Malformed>(&parsed)) {
    if (malformed->kind == Malformed::Kind::no_room) {
      m_scheduler.note_size_rejection();
    }
    return refused_message(*malformed);
  }
  json message = std::move(std::get<json>(parsed));
  *body = std::string();  // frees the memory during a long call
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

Response McpPath::post_stateless(Turn& turn, json message) {
  const json version = envelope_version(message);
  const auto header = turn.request.header("MCP-Protocol-Version");
  if (!header || version != *header) {
    return error_response(400, k_header_mismatch, "Header MCP-Protocol-Version does not match the body",
                          id_of(message));
  }
  if (message.contains("id") && version == name_of(Revision::v2026_07_28)) {
    if (const auto wrong = header_mismatch(turn.request, message, m_hub.server.catalogue)) {
      return error_response(400, k_header_mismatch, *wrong, id_of(message));
    }
  }
  const json& meta = message["params"]["_meta"];
  const auto capabilities = meta.find(k_meta_capabilities);
  turn.envelope_complete = capabilities != meta.end() && usable_capabilities(*capabilities);
  turn.outbox = std::make_shared<Outbox>();
  turn.conversation = Conversation::begin(m_hub, turn.caller, turn.outbox);
  return m_exchange.run(turn, std::move(message));
}

Response McpPath::initialize(Turn& turn, json message) {
  turn.session = m_sessions.create(turn.caller, Clock::now());
  if (!turn.session) {
    Response response = refused(503, "too many sessions for this token");
    response.headers.emplace_back("Retry-After", "60");
    return response;
  }
  turn.conversation = turn.session->conversation();
  turn.outbox = turn.session->new_stream();
  Response response = m_exchange.run(turn, std::move(message));
  if (turn.conversation->negotiated()) {
    response.headers.emplace_back("Mcp-Session-Id", turn.session->id());
  } else {
    m_sessions.remove(turn.session->id());
  }
  return response;
}

Response McpPath::post_handshake(Turn& turn, json message) {
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return refused(400, "Header Mcp-Session-Id is required after initialize", id_of(message));
  }
  turn.session = m_sessions.find(*id, turn.caller.owner, Clock::now());
  if (!turn.session) {
    return refused(404, "Session not found. Initialize again", id_of(message));
  }
  turn.conversation = turn.session->conversation();
  turn.outbox = turn.session->new_stream();
  return m_exchange.run(turn, std::move(message));
}

Response McpPath::get(Turn& turn) {
  if (!turn.request.accepts("text/event-stream")) {
    return refused(406, "Accept must include text/event-stream");
  }
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return refused(400, "Header Mcp-Session-Id is required");
  }
  turn.session = m_sessions.find(*id, turn.caller.owner, Clock::now());
  if (!turn.session) {
    return refused(404, "Session not found. Initialize again");
  }
  turn.conversation = turn.session->conversation();
  const auto last = turn.request.header("Last-Event-ID");
  const auto resumed = last ? turn.session->find_event(*last) : std::nullopt;
  turn.outbox = resumed ? resumed->first : turn.session->standing();
  const auto after = resumed ? std::optional(resumed->second) : std::nullopt;
  return m_exchange.events(turn, turn.outbox->attach(turn.request.client.wakeup(), after), /*prime=*/false);
}

Response McpPath::remove(Turn& turn) {
  const auto id = turn.request.header("Mcp-Session-Id");
  if (!id) {
    return refused(400, "Header Mcp-Session-Id is required");
  }
  if (!m_sessions.find(*id, turn.caller.owner, Clock::now())) {
    return refused(404, "Session not found");
  }
  m_sessions.remove(*id);
  Response response;
  response.status = 204;
  return response;
}

std::vector<std::shared_ptr<Conversation>> McpPath::conversations() const {
  auto all = m_exchange.stateless_conversations();
  for (const auto& session : m_sessions.all()) {
    all.push_back(session->conversation());
  }
  return all;
}

bool McpPath::stop(milliseconds finish_patience, milliseconds detach_patience) {
  m_exchange.begin_stop();
  m_scheduler.stop();
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
