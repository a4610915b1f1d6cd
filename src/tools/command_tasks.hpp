#pragma once

#include <optional>
#include <string>

#include "mcp/lost_tasks.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

/// Finds the processes of tasks that an earlier run of the server began. execute_command names the process of a task by
/// the call's handle, so the process is found by the task's id in the same run of the container.
class CommandTasks : public mcp::LostTasks {
 public:
  CommandTasks(sandbox::Sandbox& sandbox, Settings settings);

  Result<std::optional<mcp::LostTask>> find(const std::string& handle, milliseconds patience,
                                            const mcp::CallContext& context) override;
  Result<void> cancel(const std::string& handle, const mcp::CallContext& context) override;

 private:
  /// Time that execute_command would still wait. Zero for a command that has ended, waits for input or has been silent
  /// for the usual time.
  [[nodiscard]] milliseconds wait_left(const wire::ProcessState& state) const;

  sandbox::Sandbox& m_sandbox;
  Settings m_settings;
};

}  // namespace dockbridge::tools
