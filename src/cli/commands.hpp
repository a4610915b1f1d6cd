#pragma once

#include "cli/options.hpp"
#include "util/log.hpp"

namespace dockbridge::cli {

// Each subcommand; they return the program's exit status.

int serve(const Options& options, Log& log);
/// Prints the tool's text; on a terminal, control characters become visible escapes. 0: done; 1: the tool reported an
/// error; 2: no such tool, or not JSON.
int call(const Options& options, const CallOrder& order, Log& log);
/// 0 if everything a tool call needs is there.
int doctor(const Options& options, Log& log);

}  // namespace dockbridge::cli
