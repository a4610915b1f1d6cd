#pragma once

#include <cstddef>

#include "mcp/call_scheduler.hpp"
#include "mcp/hub.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

enum class StdioEnd { input_ended, stopped };

/// Serves MCP on a pair of descriptors, one message per line, until the input ends or `stop_fd` is readable. Calls that
/// still run then have a moment to finish. After that their work is left running in the container. Until they have
/// returned, input is still read, so that a cancellation takes effect, and new calls are refused. `abandoned` is set if
/// some calls have not returned: they wait for an engine that hangs, and the program exits without them. A line of more
/// than `max_message` bytes is skipped and refused, and is not kept in memory. A call is refused while the running
/// calls use the memory of two such messages.
StdioEnd serve_stdio(int input_fd, int output_fd, int stop_fd, Hub& hub, CallScheduler& scheduler,
                     std::size_t max_message, bool& abandoned);

}  // namespace dockbridge::mcp
