#pragma once

#include <cstdint>
#include <vector>

#include "agent/control/packets.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// A connection of a session to a keeper.
struct Link {
  Fd socket;
  bool is_first = false;     ///< of the session that started the keeper
  bool is_attached = false;  ///< the session has named the right process
  bool watches_growth = false;
  bool awaits_screen = false;
  std::uint32_t watched_events = 0;  ///< k_watch_input, k_watch_answer
  StatePacket sent{};                ///< latest state that the session has received
};

/// The sessions that are connected to a keeper, and what each of them watches. Sends states and screen notices, and
/// does not read orders.
class Links {
 public:
  /// The first link needs no `attach`. It has received the state "running": a session that waits only for the end is
  /// not woken before it.
  void add_first(Fd socket, bool watches_input);
  void accept(int listener);
  /// While this is false, connections wait in the queue of the listener.
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] std::vector<Link>& all() { return m_links; }
  [[nodiscard]] const std::vector<Link>& all() const { return m_links; }

  /// `events`: k_watch_input, k_watch_answer, or both for either of them.
  [[nodiscard]] bool is_watched_for(std::uint32_t events) const;
  /// Sends `state` on each link that watches what is new in it. `events` are those that are true now. With
  /// `is_free`, the state on the first link also reports that this keeper can get another command.
  void notify(StatePacket state, std::uint32_t events, bool is_free);
  /// Reports that the screen is stored, on each link that has asked for it.
  void report_screen();
  /// The link on which this keeper was reported as free; empty if there is none.
  Fd take_free();

 private:
  std::vector<Link> m_links;
};

}  // namespace dockbridge::agent
