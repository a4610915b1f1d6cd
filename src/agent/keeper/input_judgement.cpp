#include "agent/keeper/input_judgement.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

using wire::WaitsForInput;

/// A program that waits for a key with a shorter timeout has not settled. It may wait for the rest of a key that
/// begins with an escape.
constexpr milliseconds k_max_key_timeout{1500};
/// Allowance for a program to act after its timeout.
constexpr milliseconds k_timeout_slack{30};
/// Timers up to this length may belong to the event loop, for example to check the terminal's size.
constexpr milliseconds k_max_tick{500};
/// Pause after a prompt of a program that has a longer timer.
constexpr milliseconds k_prompt_pause{20};
/// Pause in which another process of the tree, or one that cannot be inspected, would have printed something.
constexpr milliseconds k_others_pause{100};
/// Pause in the output of a program that cannot be examined.
constexpr milliseconds k_answer_pause{300};

}  // namespace

InputJudgement judge_input(const InputWait& wait, const OutputEnd& output, milliseconds silence) {
  InputJudgement judgement{wait.waits};
  const auto is_silent_for = [&](milliseconds wanted) {
    if (silence < wanted) {
      judgement.recheck_after = std::min(judgement.recheck_after.value_or(wanted), wanted - silence);
    }
    return silence >= wanted;
  };
  // The output ends with a prompt, and a tick of the event loop has not changed that.
  const bool is_asking = wait.has_timer && output.is_prompt() &&
                         is_silent_for(wait.timeout > k_max_tick ? k_prompt_pause : wait.timeout + k_timeout_slack);
  const bool asks_for_secret = wait.may_ask_secret && output.is_unfinished_line() && is_silent_for(k_others_pause);
  if (is_asking || asks_for_secret) {
    judgement.waits = WaitsForInput::yes;
  }
  // The line reports work, which a timer will continue.
  const bool may_work = wait.may_hide_timer && output.is_unfinished_line() && !output.is_prompt();
  if (may_work) {
    judgement.waits = WaitsForInput::unknown;
  }
  if (judgement.waits == WaitsForInput::yes) {
    const bool may_settle = !wait.has_timer && wait.timeout.count() > 0 && wait.timeout < k_max_key_timeout;
    judgement.has_answered = is_silent_for(std::max(may_settle ? wait.timeout + k_timeout_slack : milliseconds(0),
                                                    wait.is_alone ? milliseconds(0) : k_others_pause));
  } else if (judgement.waits == WaitsForInput::unknown && !wait.has_timer && !may_work) {
    // A line is answered when the next prompt has been printed. A key is answered by any output.
    const bool is_answer = output.has_answer() && (output.is_prompt() || !output.had_input_line());
    judgement.has_answered = is_answer && is_silent_for(k_answer_pause);
  }
  return judgement;
}

}  // namespace dockbridge::agent
