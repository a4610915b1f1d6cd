#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/keeper/activity_monitor.hpp"
#include "agent/keeper/command_output.hpp"
#include "agent/spool.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Both ends of the socket of a side channel.
struct SideSocket {
  Fd keeper;
  Fd command;
};
Result<SideSocket> open_side_socket();
/// Makes a read on the command's end fail with EAGAIN after this time; 0 means no limit.
void limit_idle_time(const Fd& commands_end, milliseconds limit);

/// The socket that a command has on descriptor 3. What the command writes there is stored in a spool of its own, in
/// pieces that state the totals of stdout and stderr (wire/side_channel.hpp). Does not interpret it. Queues what
/// sessions send until the command reads it.
class SideChannel {
 public:
  /// `output` and `activity` must outlive this. Until `open`, nothing can be read or written.
  SideChannel(int directory_fd, const std::string& process, SpoolCaps caps, CommandOutput& output,
              ActivityMonitor& activity);
  void open(Fd keepers_end) { m_socket = std::move(keepers_end); }

  /// To poll; -1 if the channel is not open.
  [[nodiscard]] int fd() const { return m_socket.get(); }
  [[nodiscard]] short awaited_events() const;
  /// Reads one piece, and writes what is queued.
  void serve(Clock::time_point now);
  /// Reads what an ended command has left in the socket.
  void drain(Clock::time_point now);

  /// Number of bytes that were accepted.
  std::size_t write(std::string_view bytes, Clock::time_point now);
  /// Limits what the spool stores to `bytes` from now on.
  void trim(std::uint64_t bytes) { m_spool.trim(bytes); }
  [[nodiscard]] std::uint64_t total() const { return m_spool.total(); }

 private:
  /// False if there is nothing to read.
  bool read_piece(Clock::time_point now);
  void write_queue();

  CommandOutput& m_output;
  ActivityMonitor& m_activity;
  SpoolWriter m_spool;
  Fd m_socket;
  std::string m_queue;
};

}  // namespace dockbridge::agent
