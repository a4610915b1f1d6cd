#pragma once

#include <memory>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/clock.hpp"

namespace dockbridge::docker {

struct CommandResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs a program of the host to its end, without any shell, and collects its output. The only place that knows
/// Boost.Process. A program that outlives the deadline is killed.
Result<CommandResult> run_command(const std::vector<std::string>& argv, const std::string& input, Deadline deadline);

/// Starts a program whose standard streams become the stream. It is ended with the stream.
Result<std::unique_ptr<sandbox::ByteStream>> open_command(const std::vector<std::string>& argv);

}  // namespace dockbridge::docker
