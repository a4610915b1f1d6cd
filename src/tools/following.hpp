#pragma once

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/output.hpp"
#include "tools/toolbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// The longest that a call may wait before its client stops waiting: at most --max-wait, less for clients that cannot
/// be shown progress and for those with a limit of their own.
milliseconds longest_wait(const ToolCall& call);

/// Stays with a process until something of `until` happens or the time is up. Meanwhile tells progress: the end of the
/// output that is new, as it comes but only so often, and that it is still there while there is none.
class Following {
 public:
  /// How often output is told at most, and that there is none.
  struct Pace {
    milliseconds output{500};
    milliseconds heartbeat{2000};
  };

  Following(const ToolCall& call, wire::WaitCondition until, milliseconds patience, Pace pace);
  Following(const ToolCall& call, wire::WaitCondition until, milliseconds patience)
      : Following(call, std::move(until), patience, Pace{}) {}

  /// Starts the process and follows it.
  Result<sandbox::Snapshot> start(const sandbox::StartRequest& request);
  /// Follows one that is there; what it wrote before `now` is not told.
  Result<sandbox::Snapshot> join(const wire::ProcessState& now);

 private:
  /// Phases of a wait that reports progress.
  enum class Phase {
    pause,      ///< after a report: new output does not end the wait
    listening,  ///< new output ends the wait and is reported at once
  };

  Result<sandbox::Snapshot> go_on(Result<sandbox::Snapshot> snapshot);
  void report_output(const sandbox::Snapshot& snapshot);
  void report_heartbeat(const sandbox::Snapshot& snapshot);
  void pause();
  void listen(const sandbox::Offsets& known);
  [[nodiscard]] std::string news(const sandbox::Snapshot& snapshot);
  [[nodiscard]] milliseconds slice() const;

  const ToolCall& m_call;
  sandbox::CallLimit m_limit;
  wire::WaitCondition m_until;
  Phase m_phase = Phase::pause;
  Clock::time_point m_began = Clock::now();
  Deadline m_deadline;
  Pace m_pace;
  Cursor m_told;              // up to here
  sandbox::Offsets m_seen{};  // how much output there was at the last look
};

/// Waits for any of several processes, by their ids, and reports only that it waits.
Result<sandbox::Snapshot> follow_any(const ToolCall& call, const std::vector<std::string>& processes,
                                     const wire::WaitCondition& until, milliseconds patience);

}  // namespace dockbridge::tools
