#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "agent/control/packets.hpp"
#include "agent/keeper/pending_presses.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::agent {

/// A pseudo terminal and the process that emulates its screen. If output crashes that process, it is restarted with a
/// blank screen, and the command does not notice. Only `store_at_end` blocks.
class Terminal {
 public:
  /// The screen is stored in the file `name` below `directory_fd`, which is borrowed.
  static Result<std::unique_ptr<Terminal>> open(wire::TerminalSize size, int directory_fd, std::string name);

  /// The side of the user: writing types input, reading returns output. Non-blocking.
  [[nodiscard]] int fd() const { return m_master.get(); }
  /// The side of the command. While this is open, the terminal outlives a command that closes its descriptors.
  [[nodiscard]] int command_fd() const { return m_slave.get(); }

  /// Connection to the screen process. Poll it for reading, and for writing while there is a backlog.
  [[nodiscard]] int screen_fd() const { return m_screen.get(); }
  /// Whether the screen process is behind. No output must be read from the command in the meantime.
  [[nodiscard]] bool has_backlog() const { return !m_backlog.empty(); }
  void send_backlog();

  /// Whether there is a screen process. Retries to start it if that has failed before.
  bool has_screen();
  void show(std::string_view output);
  void press(std::string_view keys);
  /// Text that is typed behind a pending press waits there. `receive` returns it.
  [[nodiscard]] PendingPresses& presses() { return m_presses; }
  /// Position of the last key in `typed` that sends a signal and drops the input before it; npos if there is none.
  [[nodiscard]] std::size_t find_signal_key(std::string_view typed) const;
  /// Drops input that the command has not read.
  void drop_input();
  void resize(wire::TerminalSize size);
  /// Requests that the screen is stored. `receive` reports when that is done.
  void store();
  /// Stores the last screen and closes the command's side.
  void store_at_end();

  struct News {
    std::string typed;       ///< input for the command
    bool is_stored = false;  ///< no `store` is pending: all are done or have failed
  };
  /// Replies of the terminal itself are dropped beyond `room` bytes. Typed input never is.
  News receive(std::size_t room);

 private:
  Terminal(Fd master, Fd slave, wire::TerminalSize size, int directory_fd, std::string name);
  void start_screen();
  void send(std::uint8_t order, std::uint32_t value, std::string_view payload = {});

  struct Packet {
    std::uint8_t order;
    std::uint32_t value;
    std::string payload;
  };

  Fd m_master;
  Fd m_slave;
  wire::TerminalSize m_size;
  int m_directory_fd;
  std::string m_name;
  Fd m_screen;
  int m_starts = 0;
  std::uint64_t m_shown = 0;  // bytes of output
  int m_stores = 0;           // pending
  std::deque<Packet> m_backlog;
  PendingPresses m_presses;
};

}  // namespace dockbridge::agent
