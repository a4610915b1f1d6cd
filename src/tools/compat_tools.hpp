#pragma once

#include <span>

#include "tools/tool_table.hpp"

namespace dockbridge::tools {

/// A tool of an older server, which `--compat` lists. It has a small schema of its own, translates its arguments, and
/// calls the handler of another tool. It needs no rationale, and `--tools` does not select it.
struct CompatRow {
  Compat server;
  ToolRow tool;
};

/// All of them, in the order in which they are listed.
std::span<const CompatRow> compat_table();

}  // namespace dockbridge::tools
