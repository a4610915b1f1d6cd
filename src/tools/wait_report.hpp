#pragma once

#include <string>

#include "sandbox/sandbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

// Texts about a wait for a process that several tools report.

/// The event that ended a wait, as structured results name it: "exit", "pattern", "port", "idle", "input", "timeout".
std::string happened_word(wire::WaitOutcome happened);

/// Outcome of a wait of `timeout` for `until`, each line after a newline. Empty if the status of the process already
/// states it.
std::string happened_text(const sandbox::Snapshot& snapshot, const wire::WaitCondition& until, milliseconds timeout);

}  // namespace dockbridge::tools
