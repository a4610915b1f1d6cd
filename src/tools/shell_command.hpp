#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mcp/tool.hpp"
#include "tools/toolbox.hpp"
#include "tools/view.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// A command for a shell that keeps its state between calls.
struct ShellCommand {
  std::string shell;  ///< name of the shell
  std::string command;
  std::optional<std::string> cwd{};  ///< absolute, or "~"; nullopt: where the shell is
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string rationale{};
  milliseconds patience{0};
  milliseconds inactivity{0};  ///< without output
  ViewRequest view{};
  std::vector<std::string> notes{};
};

/// Runs a command in the shell with this name, which is started if there is none.
mcp::ToolResult run_in_shell(const ToolRequest& call, const ShellCommand& command);

/// The setup that a request has before its command: lines that change the directory and export the variables. Empty if
/// there is nothing to do.
std::string shell_setup(const std::optional<std::string>& cwd,
                        const std::vector<std::pair<std::string, std::string>>& environment);

/// The request that runs a command as cell `number`.
std::string shell_request(std::uint64_t number, const std::string& key, const std::string& setup,
                          const std::string& command);

}  // namespace dockbridge::tools
