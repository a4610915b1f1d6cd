#pragma once

#include <cstddef>

#include "mcp/hub.hpp"
#include "util/clock.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp {

enum class StdioEnd { input_ended, stopped };

/// Serves MCP on a pair of descriptors, one message a line, until input ends or `stop_fd` can be read. Calls that still
/// run then get a moment to finish and are left running in the container after that. Until they have returned, input is
/// still read, so that a cancellation takes effect; new calls are refused. `abandoned` tells that some did not even
/// return: they wait for an engine that hangs, and the program can only exit without them. A line of more than
/// `max_message` bytes is skipped and refused, never held in memory; a call is refused while the running calls use the
/// memory of two such messages.
StdioEnd serve_stdio(int input_fd, int output_fd, int stop_fd, Hub& hub, WorkerPool& pool, std::size_t max_message,
                     bool& abandoned);

}  // namespace dockbridge::mcp
