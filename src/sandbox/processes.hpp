#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/call_limit.hpp"
#include "sandbox/process_calls.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "util/mutex.hpp"
#include "wire/output_messages.hpp"
#include "wire/process_state.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::sandbox {

class AgentLink;

using wire::Listener;
using wire::Offsets;
using wire::Stream;
using wire::WaitCondition;
using StartRequest = wire::Command;
using Snapshot = wire::WaitAnswer;
using OutputSlice = wire::ReadAnswer;
using Screen = wire::ScreenAnswer;
using GrepRequest = wire::GrepQuery;
using GrepResult = wire::GrepAnswer;
using ProcessList = wire::ListAnswer;

/// Starts processes in the container, waits for them and reads their output. Starts nothing twice. Any thread may call.
class Processes {
 public:
  Processes(AgentLink& link, Log& log) : m_link(link), m_calls(link), m_log(log) {}

  /// The same digest of an idempotency key gives the same id in a run of the container.
  Result<std::string> new_process_id(const std::stop_token& stop = {}, const std::optional<std::string>& key = {});
  /// Returns when the process has ended, a condition of `until` is met, or `timeout` is over.
  Result<Snapshot> start(const StartRequest& request, milliseconds timeout, const WaitCondition& until,
                         const CallLimit& limit);
  Result<Snapshot> wait(const std::string& process, milliseconds timeout, const WaitCondition& until,
                        const CallLimit& limit);
  /// Waits for several processes at once, by their ids. Returns with the first for which the wait is over. A pattern is
  /// searched from the beginning of the output.
  Result<Snapshot> wait_for_any(const std::vector<std::string>& processes, milliseconds timeout,
                                const WaitCondition& until, const CallLimit& limit);
  /// Calls `on_end` once, soon after the process has ended; with `closed`, after everything that it started has. It is
  /// called by any thread and must not use the sandbox. Does not wait and does not connect. Returns the number of the
  /// connection, 0 if there is none: with that connection the watch is lost.
  std::uint64_t watch_end(const std::string& process, bool closed,
                          std::function<void(const wire::ProcessState& state)> on_end);
  /// A process of the owner as it is now, by its id or its short id (`p3`). Another owner's is `no_such_process`.
  Result<Snapshot> find(const std::string& process, const std::string& owner, const CallLimit& limit);
  /// At most `max` bytes from `offset` on, in one piece; the slice states its offset and what is stored.
  Result<OutputSlice> read(const std::string& process, Stream stream, std::uint64_t offset, std::size_t max,
                           const CallLimit& limit);
  Result<GrepResult> grep(const std::string& process, const GrepRequest& request, const CallLimit& limit);
  /// All running processes of an owner, and the latest finished ones, `most_finished` at most.
  Result<ProcessList> list(const std::string& owner, std::size_t most_finished, const CallLimit& limit,
                           Connect may_connect = Connect::if_needed);
  Result<Screen> screen(const std::string& process, const CallLimit& limit);

 private:
  /// Sets the cause of a lost process if the run of its container is over.
  void explain_loss(wire::ProcessState& state);
  /// Reads a snapshot and checks that it is of `process`. `or_namesake` also accepts the process that has the same
  /// idempotency key in another run of the container.
  Result<Snapshot> checked_snapshot(const wire::Frame& frame, const std::string& process, bool or_namesake = false);
  // The highest known number of an owner's processes. The agent gets it with each start, because it loses a state
  // directory in memory when the container stops, and must not reuse a number.
  [[nodiscard]] std::uint64_t highest_number(const std::string& owner);
  void note_number(const wire::ProcessState& state);

  AgentLink& m_link;
  ProcessCalls m_calls;
  Log& m_log;
  Mutex m_mutex;
  std::map<std::string, std::uint64_t> m_highest_numbers GUARDED_BY(m_mutex);  // of processes, by owner
};

}  // namespace dockbridge::sandbox
