#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace dockbridge::mcp {

/// Severities of log messages in MCP, lowest first.
enum class LogSeverity { debug, info, notice, warning, error, critical, alert, emergency };

inline constexpr std::array<std::string_view, 8> k_log_severity_names = {"debug", "info",     "notice", "warning",
                                                                         "error", "critical", "alert",  "emergency"};

constexpr std::string_view name_of(LogSeverity severity) {
  return k_log_severity_names[static_cast<std::size_t>(severity)];
}

constexpr std::optional<LogSeverity> log_severity(std::string_view name) {
  for (std::size_t i = 0; i < k_log_severity_names.size(); ++i) {
    if (k_log_severity_names[i] == name) {
      return static_cast<LogSeverity>(i);
    }
  }
  return std::nullopt;
}

}  // namespace dockbridge::mcp
