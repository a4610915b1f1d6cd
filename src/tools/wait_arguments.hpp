#pragma once

#include <optional>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/arguments.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

// Arguments for the condition and the time limit of a wait.

/// Longest timeout of a command in seconds. A larger number is read as milliseconds, as in the tools of other clients.
inline constexpr double k_max_timeout_seconds = 600;
/// Longest wait in seconds that a call may ask for. The server and the client may bound it further.
inline constexpr double k_max_wait_seconds = 3600;

struct Timeout {
  milliseconds value{0};
  bool was_milliseconds = false;  ///< reported to the model, so that it does not repeat the mistake
};

/// Reads `timeout`, in seconds; nullopt if it is absent.
std::optional<milliseconds> read_timeout(Arguments& arguments);
/// The same for a command, where a large number means milliseconds.
std::optional<Timeout> read_command_timeout(Arguments& arguments);

/// The schema of `waitFor`.
mcp::ordered_json wait_for_schema();
/// Reads `waitFor` into `until`; false if it is absent.
bool read_wait_for(Arguments& arguments, wire::WaitCondition& until);

}  // namespace dockbridge::tools
