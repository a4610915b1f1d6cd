#pragma once

#include "cli/options.hpp"
#include "util/log.hpp"

namespace dockbridge::cli {

// Each subcommand; they return the program's exit status.

int serve(const Options& options, Log& log);
/// Prints the tool's text; on a terminal, control characters become visible escapes. Returns 0 on success, 1 if the
/// tool reported an error, 2 if the tool is unknown or the arguments are not JSON.
int call(const Options& options, const CallOrder& order, Log& log);
/// 0 if everything a tool call needs is there.
int doctor(const Options& options, Log& log);

}  // namespace dockbridge::cli
