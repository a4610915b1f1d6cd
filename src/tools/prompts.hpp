#pragma once

#include <vector>

#include "mcp/prompt.hpp"
#include "sandbox/sandbox.hpp"

namespace dockbridge::tools {

/// What people would pick to begin with: a failing build, a new project, a look at what runs.
std::vector<mcp::Prompt> all_prompts(sandbox::Sandbox& sandbox);

}  // namespace dockbridge::tools
