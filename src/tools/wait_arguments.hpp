#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/arguments.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

// Arguments for the condition and the time limit of a wait.

/// Longest timeout of a command in seconds.
inline constexpr double k_max_timeout_seconds = 600;
/// Longest other wait in seconds that a call may ask for. The server and the client may bound it further.
inline constexpr double k_max_wait_seconds = 3600;

struct Timeout {
  milliseconds value{0};
  bool was_milliseconds = false;  ///< reported to the model, so that it does not repeat the mistake
};

/// Reads `timeout`; nullopt if it is absent. A number above `most_seconds` is read as milliseconds, as in the tools of
/// other clients.
std::optional<Timeout> read_timeout(Arguments& arguments, double most_seconds);
/// Adds a note if the timeout was read as milliseconds.
void note_milliseconds(const std::optional<Timeout>& timeout, std::vector<std::string>& notes);

/// The schema of `waitFor`.
mcp::ordered_json wait_for_schema();
/// Reads `waitFor` into `until`; false if it is absent. With `heeds_prompt`, a wait for a port or a line ends when the
/// process waits for input, too, unless the caller sets `input`.
bool read_wait_for(Arguments& arguments, wire::WaitCondition& until, bool heeds_prompt);

}  // namespace dockbridge::tools
