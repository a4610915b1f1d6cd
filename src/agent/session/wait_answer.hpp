#pragma once

#include "agent/session/process.hpp"
#include "agent/session/wait.hpp"

namespace dockbridge::agent {

/// The answer to a wait that is over: the state of the process, and its output if that is short.
Result<wire::WaitAnswer> make_wait_answer(const StateDirectory& directory, const Process& process, const Wait& wait,
                                          wire::WaitOutcome outcome);

}  // namespace dockbridge::agent
