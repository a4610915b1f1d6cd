#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

struct Settings {
  milliseconds inactivity_timeout{20'000};
  milliseconds max_wait{600'000};
  milliseconds client_timeout{50'000};  ///< the longest wait for a client that cannot be shown progress
  milliseconds max_runtime{0};          ///< 0: no limit
  bool rationale_required = true;
};

/// Which container a call is about; asked once per call.
using SandboxResolver = std::function<sandbox::Sandbox&(const mcp::CallContext& context)>;

mcp::Tool execute_command(SandboxResolver resolve, Settings settings);
mcp::Tool check_process(SandboxResolver resolve, Settings settings);
mcp::Tool send_input(SandboxResolver resolve, Settings settings);

/// All of them, in the order in which they are listed.
std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings);

}  // namespace dockbridge::tools
