#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/control/packets.hpp"
#include "agent/keeper/assignment.hpp"
#include "agent/keeper/input_wait.hpp"
#include "agent/keeper/output_end.hpp"
#include "agent/keeper/starvation.hpp"
#include "agent/keeper/streams.hpp"
#include "agent/keeper/taken_inputs.hpp"
#include "agent/keeper/terminal.hpp"
#include "agent/record.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Looks after one command: owns its pipes, spools its output, reaps its whole tree, records how it ended, and
/// answers on the control socket. Survives its session. One thread.
///
/// Many live at once, so it must stay small: no growing containers, no JSON in the loop.
class Keeper {
 public:
  /// What it borrows from the process it lives in.
  struct Surroundings {
    int directory = -1;           ///< the state directory
    int signals = -1;             ///< a signalfd for SIGCHLD
    int listener = -1;            ///< where sessions connect
    std::string socket{};         ///< the listener's name in the directory
    std::string own_oom_score{};  ///< while it keeps a command; without one it has what the next one inherits
  };

  Keeper(Assignment assignment, const Surroundings& surroundings);
  /// `pipes` are for the command, unless it has a terminal.
  Result<void> start(Streams pipes);
  /// Serves `first_link`, and whoever connects, until the whole tree is gone. Returns that link if its peer
  /// knows that this keeper can have another command.
  Fd run(Fd first_link);

 private:
  /// How long after the last sign of life a command is looked at while somebody waits for its answer to input.
  static constexpr milliseconds k_first_answer_look{2};

  struct Link {
    Fd socket;
    bool first = false;
    bool attached = false;
    bool watches_growth = false;
    std::uint32_t watches_input = 0;  ///< k_watch_input, k_watch_answer
    bool awaits_screen = false;
    StatePacket sent{};
  };

  void kill_all();
  void loop();
  [[nodiscard]] int poll_timeout_ms() const;
  void wait_for_events(std::vector<pollfd>& polled);
  void settle();

  /// Reads until the pipe is empty, or so many bytes were read.
  void read_output(Fd& pipe, SpoolWriter& spool, std::size_t enough);
  void reap();
  void note_end(bool closed);
  /// Writes the end to the journal.
  void record_end();
  [[nodiscard]] bool was_killed_for_memory() const;
  void write_input();
  void accept_link();
  bool obey(Link& link, const ControlPacket& packet);
  /// What was taken of an order: bytes, keys or signals, and whether the input ends behind them.
  struct Given {
    std::size_t count = 0;
    bool then_end = false;
  };
  /// `how`: k_then_end, k_as_paste.
  Given feed(std::string_view bytes, std::uint32_t how);
  void type(std::string text);
  void queue_input(std::string_view bytes);
  std::size_t press_keys(std::string_view names);
  Given give(Order order, std::uint32_t value, std::string_view payload);
  bool obey_once(const Link& link, const ControlPacket& packet);
  void hear_screen();
  void answer_screen_requests();
  [[nodiscard]] std::size_t room_for_input() const;
  [[nodiscard]] short screen_events() const;
  void note_activity();
  /// `what`: k_watch_input, k_watch_answer, or both for any of them.
  [[nodiscard]] bool is_watched_for(std::uint32_t what) const;
  [[nodiscard]] bool has_unread_input() const;
  [[nodiscard]] InputWait see_whether_it_waits(const std::vector<ProcessEntry>& family) const;
  void look(bool heed_starvation = false);
  void end_tree(wire::Cause cause, milliseconds grace);
  void check_timers();
  [[nodiscard]] StatePacket state() const;
  void tell_watchers();

  Assignment m_assignment;
  SpoolWriter m_out;
  SpoolWriter m_err;
  const Surroundings& m_surroundings;
  std::unique_ptr<Terminal> m_terminal;  // none: pipes
  Fd m_out_pipe;                         // or what the terminal prints
  Fd m_err_pipe;
  Fd m_stdin_pipe;  // or what is typed on the terminal
  std::string m_pending_input;
  bool m_stdin_ends = false;
  TakenInputs m_taken;
  std::vector<Link> m_links;

  pid_t m_pid = 0;
  wire::Phase m_phase = wire::Phase::running;
  Status m_status;
  bool m_end_unrecorded = false;    // the command has ended, but the journal does not say so yet
  Clock::time_point m_next_record;  // time of the next attempt to record the end
  bool m_has_polled = false;
  bool m_settled = false;
  Clock::time_point m_last_activity;
  Starvation m_starvation;  // since then
  std::optional<Clock::time_point> m_runtime_ends;
  std::optional<Clock::time_point> m_kill_at;

  OutputEnd m_output_end;
  wire::WaitsForInput m_waits_for_input = wire::WaitsForInput::no;
  bool m_has_answered = false;
  bool m_paused = false;
  wire::Usage m_reaped;  // what the dead have used
  wire::Usage m_living;  // what the living had used when they were looked at last
  std::uint32_t m_children = 0;
  std::uint64_t m_earlier_memory_kills = 0;
  Clock::time_point m_last_look;
  milliseconds m_look_interval{0};  // the longer nothing happens, the more seldom
};

}  // namespace dockbridge::agent
