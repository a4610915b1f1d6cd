#pragma once

#include <map>
#include <string>
#include <string_view>

#include "agent/session/event_loop.hpp"
#include "agent/session/keeper_pool.hpp"
#include "agent/session/process.hpp"
#include "agent/session/replies.hpp"

namespace dockbridge::agent {

/// Receives the events of the processes in a table.
class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  /// The keeper has reported a state, or is gone.
  virtual void on_change(Process& process, Clock::time_point now) = 0;
  virtual void on_start_failed(const Process& process, const Error& error) = 0;
  /// Whether the process must stay in the table without a keeper.
  [[nodiscard]] virtual bool is_awaited(const Process& process) const = 0;
};

/// The processes that the session works with, and the links to their keepers. Receives the packets of keepers and
/// sends the replies to requests for which a keeper does the work (input, keys, signals, screens).
class ProcessTable {
 public:
  ProcessTable(const StateDirectory& state, EventLoop& loop, Replies& replies, KeeperPool& keepers,
               ProcessObserver& observer);

  /// Starts a process through a keeper, and adds it to the table. `warm` is a keeper that has a warm child for it.
  Result<Process*> start(Meta meta, const Assignment& assignment, std::optional<KeeperLink> warm);
  /// Number of processes that were started.
  [[nodiscard]] std::uint64_t starts() const { return m_starts; }
  /// The process, with a link to its keeper if that still lives. Valid until `forget_ended`.
  Result<Process*> find(const std::string& id);
  /// Error `process_ended` if the process has no keeper.
  Result<Process*> find_live(const std::string& id);
  /// Null if the process is not in the table.
  [[nodiscard]] const Process* known(const std::string& id) const;
  [[nodiscard]] bool empty() const { return m_processes.empty(); }
  /// Replies with the screen of the process's terminal, after its keeper has stored it.
  Result<void> send_screen(std::uint64_t request, const std::string& id);
  /// Forgets the processes that have no keeper and are not awaited.
  void forget_ended();

 private:
  void attach(Process& process, KeeperLink link);
  KeeperLink detach(Process& process);
  void receive(const std::string& id);
  /// Returns false if the keeper violates the protocol.
  bool on_packet(Process& process, const ControlPacket& packet);
  bool on_state(Process& process, const ControlPacket& packet);
  bool on_accepted(Process& process, const ControlPacket& packet);
  bool on_start_failed(Process& process, std::string_view reason);
  void send_stored_screen(std::uint64_t request, const std::string& id);
  void send_requested_screens(Process& process);

  const StateDirectory& m_state;
  EventLoop& m_loop;
  Replies& m_replies;
  ProcessObserver& m_observer;
  KeeperPool& m_keepers;
  std::map<std::string, Process> m_processes;
  std::uint64_t m_starts = 0;
  bool m_may_have_ended = false;  ///< a process may be without a keeper
};

}  // namespace dockbridge::agent
