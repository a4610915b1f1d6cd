#pragma once

#include <vector>

#include "mcp/skill.hpp"

namespace dockbridge::tools {

/// Instructions for work that takes several calls. Arguments are written as `name: value`; a test compares them with
/// the schemas of the tools.
std::vector<mcp::Skill> all_skills();

}  // namespace dockbridge::tools
