#pragma once

#include <optional>
#include <vector>

#include "agent/session/process_table.hpp"
#include "agent/session/wait.hpp"

namespace dockbridge::agent {

/// The requests that wait for processes. Sends their replies, and asks keepers for what they need to know. A request
/// may wait for several processes. The first of these waits that is over ends the others.
class WaitList : public ProcessObserver {
 public:
  WaitList(const StateDirectory& state, Replies& replies) : m_state(state), m_replies(replies) {}

  /// Adds a wait for a process that has just been started. Its keeper reports without a query.
  void add_started(std::uint64_t request, Wait wait, Process& process);
  /// Adds a wait and asks the keeper for the state. Without a keeper, the reply is sent at once, or after all output
  /// was matched against a pattern.
  void add(std::uint64_t request, Wait wait, Process& process, Clock::time_point now);
  [[nodiscard]] bool has(std::uint64_t request) const;
  /// Drops the request. The process keeps running.
  void cancel(std::uint64_t request);

  /// Handles deadlines, ports and silence, and continues to match output.
  void check(Clock::time_point now);
  [[nodiscard]] std::optional<Clock::time_point> next_check(Clock::time_point now) const;

  void on_change(Process& process, Clock::time_point now) override;
  void on_start_failed(const Process& process, const Error& error) override;
  [[nodiscard]] bool is_awaited(const Process& process) const override;

 private:
  struct Entry {
    std::uint64_t request;
    Process* process;
    Wait wait;
    bool is_over = false;  ///< the reply was sent
  };

  /// Replies to waits for the process that are over, and sends its keeper the events to watch for. With `only_behind`,
  /// skips waits whose search is up to date.
  void serve(Process& process, Clock::time_point now, bool only_behind);
  void reply_if_over(Entry& entry, Clock::time_point now);
  void reply(const Entry& entry, wire::WaitOutcome outcome);
  void reply_error(const Entry& entry, const Error& error);
  void finish(std::uint64_t request);
  void erase_finished();
  void conclude(Entry& entry, wire::WaitOutcome outcome, Clock::time_point now);
  void check_port(Entry& entry, Clock::time_point now);
  void query(Process& process);

  const StateDirectory& m_state;
  Replies& m_replies;
  std::vector<Entry> m_entries;
};

}  // namespace dockbridge::agent
