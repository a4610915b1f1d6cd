#pragma once

#include <cstddef>

#include "mcp/server.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp {

/// The longest message that is taken; a longer line is skipped and refused, never held in memory.
inline constexpr std::size_t k_max_message_bytes = 16 * 1024 * 1024;

/// Serves MCP on a pair of descriptors, one message a line, until input ends or SIGTERM or SIGINT comes. Those
/// signals have to be blocked in every thread. Calls that still run then get a moment to finish and are left
/// running in the container after that.
int serve_stdio(int input_fd, int output_fd, const Server& server, WorkerPool& pool, Log& log);

}  // namespace dockbridge::mcp
