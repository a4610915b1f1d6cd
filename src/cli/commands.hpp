#pragma once

#include "cli/options.hpp"
#include "util/log.hpp"

namespace dockbridge::cli {

// The subcommands. They return the exit status of the program.

int serve(const Options& options, Log& log);
/// Prints the tool's text; on a terminal, control characters become visible escapes. Returns 0 on success, 1 if the
/// tool reported an error, 2 if the tool is unknown or the arguments are not JSON.
int call(const Options& options, const CallOrder& order, Log& log);
/// Returns 0 if all requirements of a tool call are met.
int doctor(const Options& options, Log& log);

}  // namespace dockbridge::cli
