#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/keeper/child.hpp"
#include "agent/keeper/control.hpp"
#include "agent/record.hpp"
#include "agent/spool.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

struct KeeperSpec {
  ChildSpec child;  ///< without its three descriptors, which the keeper makes
  Meta meta;
  milliseconds max_runtime{0};  ///< 0: no limit
  SpoolCaps caps;
  Fd directory;   ///< the process's folder
  Fd link;        ///< the first control connection: the session that forked this keeper
  Fd stdin_file;  ///< what the command reads as its input; none: a pipe, for send_input
};

/// Looks after one command: owns its pipes, spools its output, reaps its whole tree, records how it ended, and
/// answers on the control socket. Survives its session. One thread; the process exits when the tree is gone.
///
/// It runs in a forked copy of the session, so it must stay small: no growing containers, no JSON in the loop.
class Keeper {
 public:
  explicit Keeper(KeeperSpec spec);
  [[noreturn]] void run();

 private:
  struct Link {
    Fd socket;
    bool watches_growth = false;
    StatePacket sent{};
  };

  void close_inherited_descriptors();
  Result<void> start();
  void listen();
  void loop();
  [[nodiscard]] int poll_timeout_ms() const;

  void read_output(Fd& pipe, SpoolWriter& spool, std::size_t at_most);
  void reap();
  void record_end(bool closed);
  void write_input();
  void accept_link();
  bool obey(Link& link, const ControlPacket& packet);
  void take_input(Link& link, const ControlPacket& packet);
  void end_tree(wire::Cause cause, milliseconds grace);
  void check_timers();
  [[nodiscard]] StatePacket state() const;
  void tell_watchers();

  KeeperSpec m_spec;
  SpoolWriter m_out;
  SpoolWriter m_err;
  Fd m_signals;
  Fd m_listener;
  Fd m_out_pipe;
  Fd m_err_pipe;
  Fd m_stdin_pipe;
  std::string m_pending_input;
  bool m_stdin_ends = false;
  std::vector<Link> m_links;

  pid_t m_pid = 0;
  wire::Phase m_phase = wire::Phase::running;
  Status m_status;
  Clock::time_point m_last_activity;
  std::optional<Clock::time_point> m_runtime_ends;
  std::optional<Clock::time_point> m_kill_at;
};

}  // namespace dockbridge::agent
