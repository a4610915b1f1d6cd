#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/keeper/activity_monitor.hpp"
#include "agent/keeper/input_wait.hpp"
#include "agent/keeper/terminal.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Accepted part of an order: number of bytes, keys or signals, and whether the input ends behind them.
struct Accepted {
  std::size_t count = 0;
  bool then_end = false;
};

/// Number of keys in a list of names with one space between.
std::size_t count_keys(std::string_view names);

/// Writes input to a command's pipe or terminal. Queues what the command has not read, up to k_max_pending_input bytes.
class CommandInput {
 public:
  explicit CommandInput(ActivityMonitor& activity) : m_activity(activity) {}
  /// `pipe` is empty if the command reads a file. `terminal` is null for pipes and must outlive this.
  void open(Fd pipe, Terminal* terminal);
  void close() { m_pipe.reset(); }
  [[nodiscard]] bool is_open() const { return m_pipe && !m_ends; }

  /// To poll for writing; -1 if nothing is queued.
  [[nodiscard]] int fd_to_write() const { return m_queue.empty() ? -1 : m_pipe.get(); }
  void write_queue();
  /// Whether the command has not read all input. True for closed input.
  [[nodiscard]] bool has_unread() const;
  [[nodiscard]] InputSource source() const;
  [[nodiscard]] std::size_t room() const;

  /// `how`: k_then_end, k_as_paste.
  Accepted write(std::string_view bytes, std::uint32_t how, Clock::time_point now);
  /// Presses all keys or none, because the sender has the list of them. Returns their number.
  std::size_t press(std::string_view names, Clock::time_point now);
  /// Input from the screen: encoded keys, text behind them, and replies of the terminal.
  void write_from_screen(std::string_view bytes);

 private:
  /// On a terminal, text is typed after the keys that were pressed before it.
  void type(std::string text);
  void queue(std::string_view bytes);

  ActivityMonitor& m_activity;
  Fd m_pipe;  // or the terminal
  Terminal* m_terminal = nullptr;
  std::string m_queue;
  bool m_ends = false;  // after the queue
};

}  // namespace dockbridge::agent
