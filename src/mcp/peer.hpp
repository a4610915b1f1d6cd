#pragma once

#include <optional>
#include <set>
#include <string>

#include "mcp/message.hpp"
#include "mcp/revision.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::mcp {

/// Owner of a client's requests, and the tools that they may use.
struct Caller {
  std::string owner = "local";
  std::optional<std::set<std::string>> tools{};  ///< nullopt means all

  [[nodiscard]] bool may_use(const std::string& tool) const { return !tools || tools->contains(tool); }
};

/// Properties of the client that sent a request: from the handshake, or from the request itself.
struct Peer {
  Revision revision = k_newest_handshake;
  json capabilities = json::object();
  std::optional<LogSeverity> log_from{};  ///< nullopt: the client wants no log messages
  std::string client_name{};              ///< such as "claude-code"; empty if the client did not say

  [[nodiscard]] bool follows_tasks() const;
};

/// The client of a stateless request, from `params._meta`. `version` is the revision named there.
tl::expected<Peer, ProtocolError> stateless_peer(const json& params, const json& version);

/// Whether a client's capabilities can be stored: an object of at most 64 KiB.
bool usable_capabilities(const json& capabilities);
/// The name in an implementation's description (`clientInfo`), cut to 100 characters; empty if absent.
std::string name_of_client(const json& client_info);
/// `params._meta[name]`, null if absent.
json meta_field(const json& params, const char* name);
/// The idempotency key in `params._meta`; nullopt if absent or empty.
std::optional<std::string> idempotency_key(const json& params);
/// The representation that a request asks for in its `_meta`, else `usual`.
Representation requested_representation(const json& params, Representation usual);
/// `params[name]` if it is present and a string.
std::optional<std::string> text_param(const json& params, const char* name);
/// The error for a client that has not declared the tasks capability. `subject` is what needs it.
ProtocolError missing_tasks_capability(const std::string& subject);

}  // namespace dockbridge::mcp
