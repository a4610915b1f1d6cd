#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/control/assignment.hpp"
#include "agent/control/packets.hpp"
#include "agent/keeper/activity_monitor.hpp"
#include "agent/keeper/command_end.hpp"
#include "agent/keeper/command_input.hpp"
#include "agent/keeper/command_output.hpp"
#include "agent/keeper/end_timers.hpp"
#include "agent/keeper/input_orders.hpp"
#include "agent/keeper/links.hpp"
#include "agent/keeper/side_channel.hpp"
#include "agent/keeper/streams.hpp"
#include "agent/keeper/terminal.hpp"
#include "agent/keeper/warm_child.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Runs one command: starts it, polls everything that belongs to it, dispatches the orders of sessions, and ends its
/// tree at a limit. Survives its session. One thread.
///
/// Many live at the same time, so it must stay small. All buffers are bounded, and JSON is used only for the lines of
/// the journal.
class Keeper {
 public:
  /// Resources of the process, borrowed.
  struct Context {
    int directory = -1;           ///< the state directory
    int signals = -1;             ///< a signalfd for SIGCHLD
    int listener = -1;            ///< where sessions connect
    std::string socket{};         ///< name of the listener in the directory
    std::string own_oom_score{};  ///< set while a command runs; otherwise the process has the score for the next one
  };

  Keeper(Assignment assignment, const Context& context);
  /// `pipes` are for the command, unless it has a terminal.
  Result<void> start(Streams pipes);
  /// Uses a command that runs already.
  Result<void> adopt(WarmChild child);
  /// Serves `first_link` and later connections until the whole tree has ended. Returns that link if its session
  /// knows that this keeper can get another command.
  Fd run(Fd first_link);

 private:
  Result<void> begin(pid_t command, Streams streams);
  void loop();
  void list_descriptors(std::vector<pollfd>& polled) const;
  void wait_for_events(std::vector<pollfd>& polled);
  [[nodiscard]] int poll_timeout_ms() const;
  void receive_orders(const std::vector<pollfd>& polled);
  /// False for a peer that violates the protocol, or means another process.
  bool execute(Link& link, const ControlPacket& packet);
  void reap();

  /// Whether a link watches for an event that can still occur.
  [[nodiscard]] bool is_watched() const;
  void examine(bool measures_starvation = false);
  [[nodiscard]] StatePacket state() const;

  /// Sends SIGTERM to the tree, and SIGKILL after `grace`.
  void end_tree(wire::Cause cause, milliseconds grace);
  void check_output_limit();
  void check_timers();

  Assignment m_assignment;
  const Context& m_context;
  Links m_links;
  ActivityMonitor m_activity;
  std::unique_ptr<Terminal> m_terminal;  // null: pipes
  CommandOutput m_output;
  CommandInput m_input;
  SideChannel m_side;
  InputOrders m_orders;
  CommandEnd m_end;
  EndTimers m_timers;

  bool m_has_polled = false;
  bool m_has_finished_start = false;
};

}  // namespace dockbridge::agent
