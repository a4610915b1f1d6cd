#pragma once

#include <optional>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/arguments.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

// Arguments that say what a call waits for, and how long.

/// Longest time in seconds. A larger number is read as milliseconds, as other clients' tools take it.
inline constexpr double k_max_timeout_seconds = 600;

struct Timeout {
  milliseconds value{0};
  bool was_milliseconds = false;  ///< reported to the model, so that it does not repeat the mistake
};

/// Reads `timeout`; nullopt if it is absent.
std::optional<Timeout> read_timeout(Arguments& arguments);

/// The schema of `waitFor`.
mcp::ordered_json wait_for_schema();
/// Reads `waitFor` into `until`; false if it is absent.
bool read_wait_for(Arguments& arguments, sandbox::Until& until);

}  // namespace dockbridge::tools
