#pragma once

#include <array>
#include <string_view>

#include "mcp/message.hpp"

namespace dockbridge::mcp {

/// The supported revisions of the protocol, oldest first. The last is stateless: each request names its client. The
/// others begin with a handshake.
enum class Revision { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };

inline constexpr std::array<std::string_view, 5> k_revision_names = {"2024-11-05", "2025-03-26", "2025-06-18",
                                                                     "2025-11-25", "2026-07-28"};
inline constexpr Revision k_newest_handshake = Revision::v2025_11_25;

constexpr std::string_view name_of(Revision revision) {
  return k_revision_names[static_cast<std::size_t>(revision)];
}
constexpr bool is_stateless(Revision revision) {
  return revision == Revision::v2026_07_28;
}

inline constexpr const char* k_meta_version = "io.modelcontextprotocol/protocolVersion";
inline constexpr const char* k_meta_capabilities = "io.modelcontextprotocol/clientCapabilities";
inline constexpr const char* k_meta_client_info = "io.modelcontextprotocol/clientInfo";
inline constexpr const char* k_meta_server_info = "io.modelcontextprotocol/serverInfo";
inline constexpr const char* k_meta_log_level = "io.modelcontextprotocol/logLevel";
inline constexpr const char* k_meta_subscription = "io.modelcontextprotocol/subscriptionId";
inline constexpr const char* k_meta_related_task = "io.modelcontextprotocol/related-task";
inline constexpr const char* k_meta_idempotency_key = "dockbridge/idempotencyKey";
/// In a request: true asks for structuredContent, or for output schemas in tools/list.
inline constexpr const char* k_meta_structured = "dockbridge/structured";
/// In a tool result: facts for programs, in a few hundred bytes.
inline constexpr const char* k_meta_result = "dockbridge/result";
inline constexpr const char* k_skills_extension = "io.modelcontextprotocol/skills";
inline constexpr const char* k_tasks_extension = "io.modelcontextprotocol/tasks";

/// Echoes a handshake revision that is known; anything else gets the newest of them.
Revision negotiate(const json& requested);

}  // namespace dockbridge::mcp
