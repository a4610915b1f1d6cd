#pragma once

#include <cstddef>

#include "mcp/hub.hpp"
#include "util/clock.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp {

/// The longest message that is taken; a longer line is skipped and refused, never held in memory.
inline constexpr std::size_t k_max_message_bytes = 16 * 1024 * 1024;

enum class StdioEnd { input_ended, stopped };

/// Serves MCP on a pair of descriptors, one message a line, until input ends or `stop_fd` can be read. Calls that still
/// run then get a moment to finish and are left running in the container after that. `abandoned` tells that some did
/// not even return: they wait for an engine that hangs, and the program can only exit without them.
StdioEnd serve_stdio(int input_fd, int output_fd, int stop_fd, Hub& hub, WorkerPool& pool, bool& abandoned);

}  // namespace dockbridge::mcp
