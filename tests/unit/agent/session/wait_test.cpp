#include "agent/session/wait.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "agent/record.hpp"
#include "agent/spool.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::StatePacket;
using agent::Wait;
using wire::Phase;
using wire::WaitCondition;
using wire::WaitOutcome;
using Step = agent::Wait::Step;

namespace {

const Clock::time_point k_start{std::chrono::hours(1)};

Wait make(const WaitCondition& until, milliseconds timeout = seconds(10)) {
  auto wait = Wait::make({timeout, 0, until}, k_start);
  REQUIRE(wait);
  return std::move(*wait);
}

StatePacket state(Phase phase = Phase::running) {
  StatePacket packet;
  packet.phase = static_cast<std::uint8_t>(phase);
  return packet;
}

}  // namespace

TEST_CASE("wait: the end of the command is enough unless its children matter") {
  const WaitCondition children_matter[] = {{.pattern = "x"}, {.port = std::uint16_t{80}}, {.closed = true}};
  CHECK_FALSE(make({}).outcome(true, std::nullopt));
  CHECK_FALSE(make({}).outcome(true, state()));
  CHECK(make({}).outcome(true, state(Phase::exited)) == WaitOutcome::ended);
  for (const WaitCondition& until : children_matter) {
    CHECK_FALSE(make(until).outcome(true, state(Phase::exited)));
    CHECK(make(until).outcome(true, state(Phase::closed)) == WaitOutcome::ended);
    CHECK(make(until).outcome(false, state()) == WaitOutcome::ended);
  }
}

TEST_CASE("wait: at the deadline, a late keeper gets one second to report") {
  Wait wait = make({}, seconds(10));
  CHECK(wait.next_check(k_start) == k_start + seconds(10));
  CHECK(wait.next_step(k_start + milliseconds(9999)) == Step::none);
  CHECK(wait.next_step(k_start + seconds(10)) == Step::time_out);
  CHECK_FALSE(wait.outcome(true, state()));
  wait.conclude(WaitOutcome::nothing, k_start + seconds(10));
  CHECK(wait.outcome(true, state()) == WaitOutcome::nothing);
  CHECK(wait.outcome(true, state(Phase::exited)) == WaitOutcome::ended);
  CHECK(wait.next_step(k_start + milliseconds(10'999)) == Step::none);
  CHECK(wait.next_check(k_start) == k_start + seconds(11));
  CHECK(wait.next_step(k_start + seconds(11)) == Step::reply);
  CHECK(wait.concluded() == WaitOutcome::nothing);
}

TEST_CASE("wait: output beyond what the client knows ends it") {
  const Wait wait = make({.known = {{10, 20}}});
  StatePacket packet = state();
  packet.out_total = 10;
  packet.err_total = 20;
  CHECK_FALSE(wait.outcome(true, packet));
  ++packet.err_total;
  CHECK(wait.outcome(true, packet) == WaitOutcome::grew);
  CHECK_FALSE(make({}).outcome(true, packet));
}

TEST_CASE("wait: input and answers depend on the version of the keeper") {
  const Wait input = make({.input = true});
  const Wait answer = make({.answer = true});
  StatePacket packet = state();
  packet.waits_for_input = static_cast<std::uint8_t>(wire::WaitsForInput::yes);
  CHECK(input.outcome(true, packet) == WaitOutcome::input);
  CHECK_FALSE(answer.outcome(true, packet));
  CHECK_FALSE(make({}).outcome(true, packet));
  packet.header.version = 4;  // does not report answers
  CHECK(answer.outcome(true, packet) == WaitOutcome::input);
  packet = state();
  packet.answered = 1;
  CHECK(answer.outcome(true, packet) == WaitOutcome::idle);
  CHECK_FALSE(input.outcome(true, packet));
}

TEST_CASE("wait: silence is checked when it may be reached") {
  Wait wait = make({.idle = seconds(2)});
  CHECK(wait.next_check(k_start) == k_start + seconds(2));
  CHECK(wait.next_step(k_start + milliseconds(1999)) == Step::none);
  CHECK(wait.next_step(k_start + seconds(2)) == Step::query);
  CHECK(wait.next_step(k_start + seconds(2)) == Step::none);
  StatePacket packet = state();
  packet.idle_ms = 1500;
  CHECK_FALSE(wait.outcome(true, packet));
  wait.schedule_idle_check(packet, k_start + seconds(2));
  CHECK(wait.next_check(k_start) == k_start + milliseconds(2500));
  packet.idle_ms = 2000;
  CHECK(wait.outcome(true, packet) == WaitOutcome::idle);
}

TEST_CASE("wait: a port of another process is accepted after 500 ms") {
  Wait wait = make({.port = std::uint16_t{80}});
  CHECK(wait.next_step(k_start) == Step::check_port);
  CHECK(wait.next_step(k_start) == Step::none);
  CHECK(wait.next_check(k_start) == k_start + milliseconds(25));
  CHECK_FALSE(wait.accepts_foreign_port(k_start + milliseconds(499)));
  wait.postpone_port_check(k_start + milliseconds(450));
  CHECK(wait.next_check(k_start) == k_start + milliseconds(500));
  CHECK(wait.accepts_foreign_port(k_start + milliseconds(500)));
  Wait later = make({.port = std::uint16_t{80}});
  later.shorten_port_delay(milliseconds(400));
  CHECK_FALSE(later.accepts_foreign_port(k_start + milliseconds(99)));
  CHECK(later.accepts_foreign_port(k_start + milliseconds(100)));
}

TEST_CASE("wait: no event is reported before all output was matched") {
  const test::TemporaryDirectory files;
  agent::SpoolWriter out(files.fd(), agent::out_name("proc_1_a"), {});
  out.append(std::string(1'500'000, 'x') + "\nready\n");
  Wait wait = make({.pattern = "^ready$"});
  REQUIRE(wait.search(files.fd(), "proc_1_a"));
  CHECK(wait.is_behind());
  CHECK(wait.next_check(k_start) == k_start);
  CHECK_FALSE(wait.outcome(false, state(Phase::closed)));
  REQUIRE(wait.search(files.fd(), "proc_1_a"));
  CHECK_FALSE(wait.is_behind());
  CHECK(wait.outcome(false, state(Phase::closed)) == WaitOutcome::pattern);
}
