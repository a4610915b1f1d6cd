#pragma once

#include <optional>

#include "agent/keeper/input_wait.hpp"
#include "agent/keeper/output_end.hpp"
#include "util/clock.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// Whether a command waits for input, and whether it has answered its latest input.
struct InputJudgement {
  wire::WaitsForInput waits = wire::WaitsForInput::no;
  bool has_answered = false;
  /// Time after which the judgement may change if nothing happens until then; nullopt if it is final.
  std::optional<milliseconds> recheck_after{};
};

/// Judges by the kernel's report, and by the end of the output where that is not decisive. `silence` is the time
/// since the last output or input. No I/O, no clock.
InputJudgement judge_input(const InputWait& wait, const OutputEnd& output, milliseconds silence);

}  // namespace dockbridge::agent
