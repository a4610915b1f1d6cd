#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "util/clock.hpp"

namespace dockbridge::mcp {

/// Decides which calls run, which wait, and in which order they start. Owners with waiting calls take turns, and the
/// calls of one owner start in the order of their arrival. Policy only: it holds no call, reads no clock and has no
/// lock. The caller reports every arrival and every end.
class CallAdmission {
 public:
  struct Limits {
    std::size_t calls = 512;  ///< running at the same time
    std::size_t waiting = 256;
    std::size_t waiting_per_owner = 128;
    /// Text and values of the messages of waiting calls.
    std::size_t waiting_bytes = 32UL * 1024 * 1024;
    std::size_t waiting_bytes_per_owner = 16UL * 1024 * 1024;
    milliseconds max_wait{10'000};
    milliseconds first_report{100};  ///< a shorter wait is not reported
    milliseconds report_interval{1'000};
    milliseconds rejection_memory{10'000};  ///< time for which a rejection counts as recent
  };
  struct Demand {
    std::string owner;
    std::size_t owner_limit;  ///< limit of running calls of this owner
    std::size_t bytes = 0;    ///< size of its message
    bool wants_position = false;
  };
  /// Identifies a waiting call.
  using Ticket = std::uint64_t;
  enum class Decision { run, wait, reject };
  struct Arrival {
    Decision decision;
    Ticket ticket = 0;  ///< if it waits
  };
  struct Report {
    Ticket ticket;
    std::size_t position;  ///< 1 starts next
  };

  explicit CallAdmission(const Limits& limits) : m_limits(limits) {}

  /// A call that may run counts as running from now on.
  Arrival arrive(const Demand& demand, Clock::time_point now);
  /// A running call of this owner has ended.
  void end(const std::string& owner);
  /// Removes the waiting call that may run now, and counts it as running. nullopt if there is none.
  std::optional<Ticket> start_next();
  /// Removes a waiting call that will not run.
  void leave(Ticket ticket);
  /// A held call keeps its place, but it is neither started nor expired nor reported.
  void hold(Ticket ticket, bool held) { m_waiting.at(ticket).held = held; }
  [[nodiscard]] bool is_held(Ticket ticket) const { return m_waiting.at(ticket).held; }

  /// Waiting calls whose time has passed. They still have to leave.
  [[nodiscard]] std::vector<Ticket> expired(Clock::time_point now) const;
  /// Positions that have changed since they were reported, for calls that want to know. Each at most once per interval.
  std::vector<Report> take_reports(Clock::time_point now);
  /// The next time at which `expired` or `take_reports` may return something. nullopt if no call waits.
  [[nodiscard]] std::optional<Clock::time_point> next_event() const;

  [[nodiscard]] std::size_t waiting() const { return m_waiting.size(); }
  /// Number of calls that start before this one and including it, if no other call arrives.
  [[nodiscard]] std::size_t position(Ticket ticket) const;
  /// Time after which the queue has a free place: the oldest waiting call has left it.
  [[nodiscard]] seconds retry_after(Clock::time_point now) const;

  void note_rejection(Clock::time_point now) { m_last_rejection = now; }
  [[nodiscard]] bool has_rejected_lately(Clock::time_point now) const;

 private:
  struct Waiting {
    Demand demand;
    Clock::time_point deadline;
    Clock::time_point next_report;
    std::size_t reported = 0;  ///< position; 0 means not yet
    bool held = false;
  };
  struct Owner {
    std::size_t running = 0;
    std::size_t bytes = 0;       ///< of its waiting calls
    std::deque<Ticket> queue{};  ///< by arrival
  };

  [[nodiscard]] bool has_place(const Demand& demand);
  void remove(Ticket ticket);

  const Limits m_limits;
  Ticket m_next_ticket = 1;
  std::size_t m_running = 0;
  std::size_t m_bytes = 0;
  std::map<Ticket, Waiting> m_waiting;
  std::map<std::string, Owner> m_owners;  // one entry per token name
  std::deque<std::string> m_turns;        // owners with waiting calls; the first one is next
  std::optional<Clock::time_point> m_last_rejection;
};

}  // namespace dockbridge::mcp
