#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "agent/control/packets.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::agent {

/// A pseudo terminal, and the process that knows what is on its screen. That may fall over what is printed: it is then
/// started anew, with a blank screen, and the command does not notice. Nothing here blocks but `store_at_end`.
class Terminal {
 public:
  /// The screen goes to the file `name` below `directory_fd`, which is borrowed.
  static Result<std::unique_ptr<Terminal>> open(wire::TerminalSize size, int directory_fd, std::string name);

  /// The side of the person: what is written is typed, what is read was printed. Not blocking.
  [[nodiscard]] int fd() const { return m_master.get(); }
  /// The side of the command. While this is open, the terminal outlives a command that closes its own.
  [[nodiscard]] int command_fd() const { return m_slave.get(); }

  /// To the screen's process: poll it for input, and for output while there is a backlog.
  [[nodiscard]] int screen_fd() const { return m_screen.get(); }
  /// While this is so, nothing more is to be read from the command: a terminal is only so fast.
  [[nodiscard]] bool has_backlog() const { return !m_backlog.empty(); }
  void send_backlog();

  /// Whether there is a picture; if there was none for want of processes, another is tried.
  bool has_screen();
  void show(std::string_view output);
  void press(std::string_view keys);
  /// Text that is typed: returns what can go to the command now. What has to wait for keys that were pressed before it
  /// comes from `receive`.
  std::string type(std::string text);
  /// Position of the last key in `typed` that sends a signal and drops the input before it; npos if there is none.
  [[nodiscard]] std::size_t find_signal_key(std::string_view typed) const;
  /// Drops what was typed and not read.
  void drop_input();
  [[nodiscard]] std::size_t keys_under_way() const { return m_behind_keys.size(); }
  [[nodiscard]] std::size_t waiting_bytes() const;
  void resize(wire::TerminalSize size);
  /// Told by `receive` when it is done.
  void store();
  /// Stores what the command left on the screen and lets go of the command's side.
  void store_at_end();

  struct News {
    std::string typed;    ///< goes to the command
    bool stored = false;  ///< every `store` so far is done, or will not be
  };
  /// Answers of the terminal itself are dropped beyond `room` bytes, what was typed never is.
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
  int m_stores = 0;           // that are not done
  std::deque<Packet> m_backlog;
  std::deque<std::string> m_behind_keys;  // for each press under way, what was typed after it
};

}  // namespace dockbridge::agent
