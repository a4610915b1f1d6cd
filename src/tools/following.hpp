#pragma once

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/output.hpp"
#include "tools/toolbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// Longest wait of a call: --max-wait, or less for clients without progress and clients with a limit of their own.
milliseconds longest_wait(const ToolRequest& call);

/// Follows a process until a condition of `until` is met or the time is up. Meanwhile reports progress: the end of new
/// output, at bounded intervals, or a heartbeat while there is none.
class Following {
 public:
  /// Shortest interval between reports of output, and the interval of heartbeats.
  struct Pace {
    milliseconds output{500};
    milliseconds heartbeat{2000};
  };

  Following(const ToolRequest& call, wire::WaitCondition until, milliseconds patience, Pace pace);
  Following(const ToolRequest& call, wire::WaitCondition until, milliseconds patience)
      : Following(call, std::move(until), patience, Pace{}) {}

  /// Starts the process and follows it.
  Result<sandbox::Snapshot> start(const sandbox::StartRequest& request);
  /// Follows an existing process. Output before `now` is not reported.
  Result<sandbox::Snapshot> join(const wire::ProcessState& now);

 private:
  /// Phases of a wait that reports progress.
  enum class Phase {
    pause,      ///< after a report: new output does not end the wait
    listening,  ///< new output ends the wait and is reported at once
  };

  Result<sandbox::Snapshot> follow(Result<sandbox::Snapshot> snapshot);
  void report_output(const sandbox::Snapshot& snapshot);
  void report_heartbeat(const sandbox::Snapshot& snapshot);
  void pause();
  void listen(const sandbox::Offsets& known);
  [[nodiscard]] std::string news(const sandbox::Snapshot& snapshot);
  [[nodiscard]] milliseconds slice() const;

  const ToolRequest& m_call;
  sandbox::CallLimit m_limit;
  wire::WaitCondition m_until;
  Phase m_phase = Phase::pause;
  Clock::time_point m_began = Clock::now();
  Deadline m_deadline;
  Pace m_pace;
  Cursor m_reported;          // output before it was reported
  sandbox::Offsets m_seen{};  // output at the last answer
};

/// Waits for any of several processes, by their ids, and reports only heartbeats.
Result<sandbox::Snapshot> follow_any(const ToolRequest& call, const std::vector<std::string>& processes,
                                     const wire::WaitCondition& until, milliseconds patience);

}  // namespace dockbridge::tools
