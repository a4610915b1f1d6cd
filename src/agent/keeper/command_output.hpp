#pragma once

#include <cstdint>
#include <string>

#include "agent/keeper/activity_monitor.hpp"
#include "agent/keeper/terminal.hpp"
#include "agent/spool.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Reads what a command prints from its pipes or its terminal, stores it in the spools, and passes it on to the screen.
class CommandOutput {
 public:
  CommandOutput(int directory_fd, const std::string& process, SpoolCaps caps, ActivityMonitor& activity);
  /// `err` is empty on a terminal, `terminal` is null for pipes and must outlive this.
  void open(Fd out, Fd err, Terminal* terminal);

  /// To poll for reading. -1 if there is nothing to read, or not while the screen is behind.
  [[nodiscard]] int out_fd() const;
  [[nodiscard]] int err_fd() const { return m_err_pipe.get(); }
  void read_out(Clock::time_point now);
  void read_err(Clock::time_point now);
  /// Reads what an ended command has left in its pipes.
  void drain(Clock::time_point now);
  /// Whether there is output that could be read now.
  [[nodiscard]] bool has_unread() const;

  /// Limits what both spools store to `bytes` together from now on.
  void trim(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t out_total() const { return m_out.total(); }
  [[nodiscard]] std::uint64_t err_total() const { return m_err.total(); }

 private:
  /// Reads until the pipe is empty, or `enough` bytes were read.
  void read(Fd& pipe, SpoolWriter& spool, std::size_t enough, Clock::time_point now);

  ActivityMonitor& m_activity;
  SpoolWriter m_out;
  SpoolWriter m_err;
  Fd m_out_pipe;  // or the terminal
  Fd m_err_pipe;
  Terminal* m_terminal = nullptr;
};

}  // namespace dockbridge::agent
