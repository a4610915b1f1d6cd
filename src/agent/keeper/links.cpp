#include "agent/keeper/links.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_connections = 64;

}  // namespace

void Links::add_first(Fd socket, bool watches_input) {
  m_links.push_back(Link{.socket = std::move(socket),
                         .is_first = true,
                         .is_attached = true,
                         .watched_events = watches_input ? k_watch_input : 0});
}

void Links::accept(int listener) {
  Fd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    m_links.push_back(Link{.socket = std::move(socket)});
  }
}

bool Links::has_room() const {
  return m_links.size() < k_max_connections;
}

bool Links::is_watched_for(std::uint32_t events) const {
  return std::any_of(m_links.begin(), m_links.end(),
                     [&](const Link& link) { return (link.watched_events & events) != 0; });
}

void Links::notify(StatePacket state, std::uint32_t events, bool is_free) {
  for (Link& link : m_links) {
    const bool has_grown = state.out_total != link.sent.out_total || state.err_total != link.sent.err_total ||
                           state.side_total != link.sent.side_total;
    const bool is_due = link.is_attached && (state.phase != link.sent.phase || (link.watches_growth && has_grown) ||
                                             (link.watched_events & events) != 0);
    state.header.value = link.is_first && is_free ? k_keeper_is_free : 0;
    if (is_due && send_state(link.socket.get(), state)) {
      link.sent = state;
      link.watches_growth = false;
      link.watched_events &= ~events;
    }
  }
}

void Links::report_screen() {
  for (Link& link : m_links) {
    if (std::exchange(link.awaits_screen, false)) {
      send_control(link.socket.get(), static_cast<std::uint8_t>(Answer::screen), 0);
    }
  }
}

Fd Links::take_free() {
  const auto free = std::find_if(m_links.begin(), m_links.end(),
                                 [](const Link& link) { return link.sent.header.value == k_keeper_is_free; });
  return free == m_links.end() ? Fd() : std::move(free->socket);
}

}  // namespace dockbridge::agent
