#include "agent/keeper/links.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <utility>

using namespace dockbridge;
using agent::ControlPacket;
using agent::Links;
using agent::StatePacket;
using wire::Phase;

namespace {

/// A session's end of a link.
class Session {
 public:
  Session() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
    m_own.reset(ends[0]);
    m_other.reset(ends[1]);
  }
  Fd link() { return std::move(m_other); }
  [[nodiscard]] std::optional<StatePacket> received() const {
    ControlPacket packet;
    return receive_control(m_own.get(), packet) == agent::Received::packet ? state_in(packet) : std::nullopt;
  }

 private:
  Fd m_own;
  Fd m_other;
};

StatePacket state_of(Phase phase, std::uint64_t out_total = 0) {
  StatePacket state;
  state.header.type = static_cast<std::uint8_t>(agent::Answer::state);
  state.phase = static_cast<std::uint8_t>(phase);
  state.out_total = out_total;
  return state;
}

}  // namespace

TEST_CASE("links: a change of the phase is sent once") {
  Session session;
  Links links;
  links.add_first(session.link(), false);
  links.notify(state_of(Phase::running), 0, false);
  CHECK_FALSE(session.received());
  links.notify(state_of(Phase::exited), 0, false);
  links.notify(state_of(Phase::exited), 0, false);
  CHECK(session.received());
  CHECK_FALSE(session.received());
}

TEST_CASE("links: growth and events are sent once, to a session that watches them") {
  Session session;
  Links links;
  links.add_first(session.link(), true);
  links.notify(state_of(Phase::running, 5), agent::k_watch_answer, false);
  CHECK_FALSE(session.received());
  links.notify(state_of(Phase::running, 5), agent::k_watch_input, false);
  CHECK(session.received());
  CHECK_FALSE(links.is_watched_for(agent::k_watch_input));
  links.all().front().watches_growth = true;
  links.notify(state_of(Phase::running, 5), 0, false);
  CHECK_FALSE(session.received());
  links.notify(state_of(Phase::running, 6), 0, false);
  links.notify(state_of(Phase::running, 7), 0, false);
  CHECK(session.received()->out_total == 6);
  CHECK_FALSE(session.received());
}

TEST_CASE("links: nothing is sent before a session has attached") {
  Session session;
  Links links;
  links.all().push_back(agent::Link{.socket = session.link()});
  links.notify(state_of(Phase::exited), 0, false);
  CHECK_FALSE(session.received());
}

TEST_CASE("links: only the first link learns that the keeper is free") {
  Session first;
  Session second;
  Links links;
  links.add_first(first.link(), false);
  links.all().push_back(agent::Link{.socket = second.link(), .is_attached = true});
  links.notify(state_of(Phase::exited), 0, false);
  CHECK(first.received()->header.value == 0);
  CHECK_FALSE(links.take_free());
  links.notify(state_of(Phase::closed), 0, true);
  CHECK(first.received()->header.value == agent::k_keeper_is_free);
  CHECK(second.received());
  CHECK(second.received()->header.value == 0);
  CHECK(links.take_free());
}
