#pragma once

#include <string>
#include <vector>

#include "mcp/message.hpp"
#include "mcp/revision.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::mcp {

struct ServerInfo {
  std::string name;
  std::string title;
  std::string version;
  std::string instructions;
};

/// What there is to say about this server, in the form each revision wants it. Holds no connection and no state:
/// any thread may ask.
class Server {
 public:
  Server(ServerInfo info, std::vector<Tool> tools);

  [[nodiscard]] json initialize_result(Revision revision) const;
  [[nodiscard]] json discover_result() const;
  [[nodiscard]] json tools_list_result(Revision revision) const;
  [[nodiscard]] json call_result(ToolResult result, Revision revision) const;
  /// None if there is no such tool.
  [[nodiscard]] const Tool* find_tool(const std::string& name) const;

 private:
  [[nodiscard]] json implementation(Revision revision) const;
  [[nodiscard]] json finished(json result, Revision revision) const;

  ServerInfo m_info;
  std::vector<Tool> m_tools;
};

}  // namespace dockbridge::mcp
