#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "error/error.hpp"
#include "mcp/tasks.hpp"
#include "mcp/tool.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

/// Work that a call began under its handle, in this or an earlier run of the server.
struct LostTask {
  TaskStatus status = TaskStatus::working;  ///< working, completed or cancelled
  std::int64_t created_ms = 0;              ///< Unix time
  std::int64_t updated_ms = 0;              ///< Unix time
  ToolResult result{};                      ///< if completed
  bool runs = false;                        ///< the work is not finished; a completed task may have such work
};

/// Finds the work of tasks that this process does not know, by the handle of their calls (`CallContext::handle`). Any
/// thread may call. Each function may block; lists and greetings never call it.
class LostTasks {
 public:
  virtual ~LostTasks() = default;
  /// Waits up to `patience` until the work has ended. nullopt if this caller has no such work.
  virtual Result<std::optional<LostTask>> find(const std::string& handle, milliseconds patience,
                                               const CallContext& context) = 0;
  /// Ends the work, if this caller has it.
  virtual Result<void> cancel(const std::string& handle, const CallContext& context) = 0;
};

}  // namespace dockbridge::mcp
