#include "tools/client_patience.hpp"

#include <algorithm>
#include <array>

namespace dockbridge::tools {

namespace {

bool matches(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

}  // namespace

std::optional<milliseconds> find_client_wait(const std::vector<ClientWait>& rows, std::string_view client_name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ClientWait& row) { return matches(row.name, client_name); });
  return found == rows.end() ? std::nullopt : std::optional(found->wait);
}

// Names recorded from the real clients in November 2026; the limits are the defaults of each client.
const std::vector<ClientWait>& known_client_waits() {
  static const std::vector<ClientWait> rows = {
      {"codex-mcp-client", seconds(240)},        // Codex 0.169.0: cancels after 300 s
      {"claude-code", seconds(110)},             // Claude Code 2.1.326: in the background after 120 s
      {"gemini-cli-mcp-client*", seconds(540)},  // Gemini CLI 0.61.0: cancels after 600 s
      {"qwen-cli-mcp-client*", seconds(540)},    // Qwen Code 0.24.4: cancels after 600 s; the server's name follows
  };
  return rows;
}

// Recorded from the real clients in November 2026. Codex is not among them: it states "MCP request cancelled by caller"
// both at its timeout and when the user aborts.
bool is_client_timeout(std::string_view reason) {
  static constexpr std::array<std::string_view, 2> k_reasons = {
      "SdkError: Request timed out",                    // Claude Code 2.1.326
      "McpError: MCP error -32001: Request timed out",  // Gemini CLI 0.61.0, opencode 1.18.33, Qwen Code 0.24.4
  };
  return std::find(k_reasons.begin(), k_reasons.end(), reason) != k_reasons.end();
}

}  // namespace dockbridge::tools
