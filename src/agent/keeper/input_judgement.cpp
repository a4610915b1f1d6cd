#include "agent/keeper/input_judgement.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

using wire::WaitsForInput;

/// A program that is waiting for a key and for less than this to pass has not settled: it may be about to find that an
/// escape was not the beginning of a longer key.
constexpr milliseconds k_longest_key_timeout{1500};
/// Allowance for a program to act after its timeout.
constexpr milliseconds k_timeout_slack{30};
/// Event loops have shorter timers of their own, to look after a terminal's size for example.
constexpr milliseconds k_longest_tick{500};
/// Pause behind a prompt of a program that has a longer timer.
constexpr milliseconds k_prompt_pause{20};
/// Pause in which another process of the tree, or one that cannot be inspected, would have printed something.
constexpr milliseconds k_others_pause{100};
/// Pause in the output of a program of which it cannot be seen whether it waits for input.
constexpr milliseconds k_answer_pause{300};

}  // namespace

InputJudgement judge_input(const InputWait& wait, const OutputEnd& output, milliseconds silence) {
  InputJudgement judgement{wait.waits};
  const auto is_silent_for = [&](milliseconds wanted) {
    if (silence < wanted) {
      judgement.look_again = std::min(judgement.look_again.value_or(wanted), wanted - silence);
    }
    return silence >= wanted;
  };
  // A prompt stands there, and a tick of the event loop has not changed it.
  const bool is_asking = wait.has_timer && output.is_prompt() &&
                         is_silent_for(wait.timeout > k_longest_tick ? k_prompt_pause : wait.timeout + k_timeout_slack);
  const bool asks_for_secret = wait.may_ask_secret && output.is_unfinished_line() && is_silent_for(k_others_pause);
  if (is_asking || asks_for_secret) {
    judgement.waits = WaitsForInput::yes;
  }
  // Work is reported there, which a timer will continue.
  const bool may_work = wait.may_hide_timer && output.is_unfinished_line() && !output.is_prompt();
  if (may_work) {
    judgement.waits = WaitsForInput::unknown;
  }
  if (judgement.waits == WaitsForInput::yes) {
    const bool may_settle = !wait.has_timer && wait.timeout.count() > 0 && wait.timeout < k_longest_key_timeout;
    judgement.has_answered = is_silent_for(std::max(may_settle ? wait.timeout + k_timeout_slack : milliseconds(0),
                                                    wait.is_alone ? milliseconds(0) : k_others_pause));
  } else if (judgement.waits == WaitsForInput::unknown && !wait.has_timer && !may_work) {
    // A line is answered when the next prompt stands there. A key is answered by any change.
    const bool is_answer = output.has_answer() && (output.is_prompt() || !output.was_given_line());
    judgement.has_answered = is_answer && is_silent_for(k_answer_pause);
  }
  return judgement;
}

}  // namespace dockbridge::agent
