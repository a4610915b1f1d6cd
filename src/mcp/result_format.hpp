#pragma once

#include <optional>
#include <string>

#include "mcp/log_severity.hpp"
#include "mcp/message.hpp"
#include "mcp/prompt.hpp"
#include "mcp/revision.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::mcp {

struct ServerInfo {
  std::string name;
  std::string title;
  std::string version;
  std::string instructions;
  std::string icon{};            ///< URI of an SVG; empty means none
  bool announces_lists = false;  ///< the lists may change while the server runs
  /// Used for requests that do not ask for another.
  Representation representation = Representation::structured;
  /// Severity from which handshake clients get log messages before they choose one; nullopt means none are sent.
  std::optional<LogSeverity> unasked_log{};
};

/// Sets the title, if there is one and the revision has titles.
void put_title(json& entry, const std::string& title, Revision revision);

/// The form that results have in each revision. Immutable, so any thread may call.
class ResultFormat {
 public:
  /// `info` outlives this.
  explicit ResultFormat(const ServerInfo& info) : m_info(info) {}

  /// Name and version of the server. `whole`: with the fields that need not be repeated in each result.
  [[nodiscard]] json implementation(Revision revision, bool whole) const;
  [[nodiscard]] json call_result(ToolResult result, Revision revision, Representation representation) const;
  [[nodiscard]] json prompt_result(const Prompt& prompt, PromptResult result, Revision revision) const;
  [[nodiscard]] json read_result(json contents, Revision revision) const;
  /// Any result that changes rarely, with the time for which a client may keep it. `filtered`: it is not the same for
  /// all clients.
  [[nodiscard]] json cacheable(json result, Revision revision, bool filtered) const;
  /// Any other result, with the fields that every result of the stateless revision has.
  [[nodiscard]] json finished(json result, Revision revision, const char* type = "complete") const;

 private:
  const ServerInfo& m_info;
};

}  // namespace dockbridge::mcp
