#pragma once

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/toolbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// The longest that a call may stay with a process: a client that cannot be shown progress gives up early.
milliseconds longest_wait(const ToolCall& call);

/// Stays with a process until something of `until` happens or the time is up, and tells progress meanwhile.
class Following {
 public:
  Following(const ToolCall& call, sandbox::Until until, milliseconds patience);

  /// Starts the process and follows it.
  Result<sandbox::Snapshot> start(const sandbox::StartRequest& request);
  /// Follows one that is there.
  Result<sandbox::Snapshot> join(const std::string& process);

 private:
  [[nodiscard]] milliseconds slice() const;
  Result<sandbox::Snapshot> go_on(Result<sandbox::Snapshot> snapshot);

  const ToolCall& m_call;
  sandbox::Until m_until;
  Clock::time_point m_began = Clock::now();
  Deadline m_deadline;
};

}  // namespace dockbridge::tools
