#include "agent/session/keeper_link.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "support/temporary_directory.hpp"
#include "unit/agent/fake_keeper.hpp"

using namespace dockbridge;
using agent::ControlPacket;
using agent::KeeperLink;
using agent::Moment;
using agent::Received;
using agent::Record;
using test::FakeKeeper;
using test::TemporaryDirectory;

namespace {

const std::string k_process = "proc_1_a";
const Moment k_moment{1'700'000'000'000, 90'000'000, "b007"};

/// The record of a process that was recorded at this moment and has no keeper yet.
Record recorded(const Moment& when) {
  Record record;
  record.meta.started = when;
  return record;
}

std::string outcome(const Record& record, const Moment& now) {
  const TemporaryDirectory directory;
  const auto link = KeeperLink::find(directory.fd(), k_process, record, now);
  return !link ? std::string(name_of(link.error().code)) : *link ? "found" : "none";
}

/// A link to a keeper that the session did not start, and the keeper's end of it.
struct Linked {
  TemporaryDirectory directory;
  FakeKeeper keeper{directory.fd(), "keeper_7_7"};
  std::optional<KeeperLink> link;
  Fd other;

  explicit Linked(std::uint8_t control = 1) {
    Record record = recorded(k_moment);
    record.kept = {7, keeper.name(), control};
    auto found = KeeperLink::find(directory.fd(), k_process, record, k_moment);
    REQUIRE(found);
    REQUIRE(*found);
    link = std::move(*found);
    other = keeper.accept();
    REQUIRE(other);
    ControlPacket first;
    REQUIRE(agent::receive_control(other.get(), first) == Received::packet);
    CHECK(first.header.type == static_cast<std::uint8_t>(agent::Order::attach));
    CHECK(first.payload == k_process);
  }
};

/// The state of a running process as version 1 sent it: the first 56 bytes of the current packet.
std::string state_of_version_1() {
  std::array<char, 56> packet{};
  packet[0] = 1;    // version
  packet[1] = 1;    // state
  packet[11] = 1;   // stdin is open
  packet[16] = 42;  // pid
  packet[24] = 5;   // bytes of stdout
  return {packet.data(), packet.size()};
}

}  // namespace

TEST_CASE("keeper link: a new record means a start in progress, despite clock jumps") {
  for (const std::int64_t jump : {0, 86'400'000, -86'400'000}) {
    CAPTURE(jump);
    const Moment just{k_moment.unix_ms + jump, k_moment.uptime_ms - 1000, k_moment.boot};
    CHECK(outcome(recorded(just), k_moment) == "keeper_busy");
    const Moment earlier{k_moment.unix_ms + jump, k_moment.uptime_ms - 6000, k_moment.boot};
    CHECK(outcome(recorded(earlier), k_moment) == "none");
  }
}

TEST_CASE("keeper link: without a boot id in common, the wall clock counts") {
  for (const std::string boot : {"other", ""}) {
    CHECK(outcome(recorded({k_moment.unix_ms - 1000, k_moment.uptime_ms - 1000, boot}), k_moment) == "keeper_busy");
    CHECK(outcome(recorded({k_moment.unix_ms - 6000, k_moment.uptime_ms - 1000, boot}), k_moment) == "none");
    // A wall clock that was put back must not prolong this.
    CHECK(outcome(recorded({k_moment.unix_ms + 6000, k_moment.uptime_ms - 1000, boot}), k_moment) == "none");
  }
}

TEST_CASE("keeper link: a keeper of version 1 gets only orders that it supports") {
  Linked l;
  const std::string state = state_of_version_1();
  REQUIRE(::send(l.other.get(), state.data(), state.size(), 0) == 56);
  ControlPacket packet;
  REQUIRE(l.link->receive(packet) == Received::packet);
  CHECK(packet.header.version == 1);
  const auto reported = agent::state_in(packet);
  REQUIRE(reported);
  CHECK(reported->pid == 42);
  CHECK(reported->out_total == 5);
  CHECK(reported->stdin_open == 1);
  CHECK(reported->waits_for_input == 0);
  CHECK(reported->used.cpu_ms == 0);
  CHECK(reported->ended_uptime_ms == 0);

  CHECK(l.link->keys("up").error().code == ErrorCode::keeper_too_old);
  CHECK(l.link->screen().error().code == ErrorCode::keeper_too_old);
  CHECK(l.link->resize({80, 24}).error().code == ErrorCode::keeper_too_old);
  CHECK(l.link->watch_input(agent::k_watch_input).error().code == ErrorCode::keeper_too_old);
  CHECK(l.link->once({}, 0, "text").error().code == ErrorCode::keeper_too_old);
  CHECK(l.link->query());
  CHECK(l.link->watch_growth());
  CHECK(l.link->input("text", false));
  CHECK(l.link->signal(15));
  CHECK(l.link->end_tree(wire::Cause::terminated, 100));
  int orders = 0;
  while (agent::receive_control(l.other.get(), packet) == Received::packet) {
    ++orders;
    CHECK(packet.header.type <= static_cast<std::uint8_t>(agent::Order::attach));
  }
  CHECK(orders == 5);
}

TEST_CASE("keeper link: the first packet of a keeper determines its version") {
  Linked l;
  CHECK(l.link->keys("up").error().code == ErrorCode::keeper_too_old);
  REQUIRE(agent::send_state(l.other.get(), {}));
  ControlPacket packet;
  REQUIRE(l.link->receive(packet) == Received::packet);
  CHECK(l.link->keys("up"));
}

TEST_CASE("keeper link: a version in the record counts before the first packet") {
  Linked older(3);
  CHECK(older.link->keys("up"));
  CHECK(older.link->once({}, 0, "text").error().code == ErrorCode::keeper_too_old);
  Linked l(4);
  agent::OnceHeader step;
  step.at = 5;
  step.order = static_cast<std::uint8_t>(agent::Order::input);
  REQUIRE(l.link->once(step, 1, "text"));
  ControlPacket packet;
  REQUIRE(agent::receive_control(l.other.get(), packet) == Received::packet);
  CHECK(packet.header.type == static_cast<std::uint8_t>(agent::Order::once));
  CHECK(packet.header.value == 1);
  REQUIRE(packet.payload.size() == sizeof step + 4);
  CHECK(std::memcmp(packet.payload.data(), &step, sizeof step) == 0);
  CHECK(packet.payload.substr(sizeof step) == "text");
}

TEST_CASE("keeper link: a longer state packet is accepted, a short one is rejected") {
  std::string bytes = state_of_version_1();
  bytes.resize(sizeof(agent::StatePacket), '\0');
  bytes += std::string(200, '\x7f');
  ControlPacket packet;
  packet.payload = bytes.substr(sizeof packet.header);
  CHECK(agent::state_in(packet)->pid == 42);
  packet.payload.resize(agent::k_min_state_bytes - sizeof packet.header - 1);
  CHECK_FALSE(agent::state_in(packet));
}
