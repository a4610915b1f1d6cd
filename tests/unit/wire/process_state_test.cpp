#include "wire/process_state.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace dockbridge;
using nlohmann::json;
using wire::Cause;
using wire::EndKind;
using wire::Phase;
using wire::ProcessState;

namespace {

ProcessState example() {
  ProcessState state;
  state.id = "proc_42_aZ09";
  state.phase = Phase::exited;
  state.end = EndKind::signal;
  state.end_code = 15;
  state.cause = Cause::timeout;
  state.out = {100, 10, 90};
  state.err = {5, 5, 5};
  state.idle_ms = 1234;
  state.stdin_open = true;
  state.pid = 4711;
  state.started_at_ms = 1'700'000'000'000;
  state.ended_at_ms = 1'700'000'000'500;
  state.command = "make \"ä\"";
  state.cwd = "/app";
  state.owner = "local";
  state.path = "/tmp/.dockbridge-0/proc_42_aZ09";
  return state;
}

Result<ProcessState> state_from(const json& value) {
  return wire::message_from<ProcessState>(value, ErrorCode::protocol_violation);
}

bool refused(const json& value) {
  const auto state = state_from(value);
  return !state && state.error().code == ErrorCode::protocol_violation;
}

json example_with(const char* key, json value) {
  json changed = wire::to_json(example());
  changed[key] = std::move(value);
  return changed;
}

}  // namespace

TEST_CASE("process state: survives the round trip") {
  const auto state = state_from(wire::to_json(example()));
  REQUIRE(state);
  CHECK(state->id == "proc_42_aZ09");
  CHECK(state->phase == Phase::exited);
  CHECK(state->end == EndKind::signal);
  CHECK(state->end_code == 15);
  CHECK(state->cause == Cause::timeout);
  CHECK(state->out.total == 100);
  CHECK(state->out.head_end == 10);
  CHECK(state->out.tail_start == 90);
  CHECK(state->err.total == 5);
  CHECK(state->idle_ms == 1234);
  CHECK(state->stdin_open);
  CHECK(state->pid == 4711);
  CHECK(state->started_at_ms == 1'700'000'000'000);
  CHECK(state->ended_at_ms == 1'700'000'000'500);
  CHECK(state->command == "make \"ä\"");
  CHECK(state->cwd == "/app");
  CHECK(state->owner == "local");
  CHECK(state->path == "/tmp/.dockbridge-0/proc_42_aZ09");
  CHECK_FALSE(state->running());
  CHECK(wire::to_json(*state) == wire::to_json(example()));
}

TEST_CASE("process state: every phase, end and cause survives the round trip") {
  for (const Phase phase : {Phase::running, Phase::exited, Phase::closed, Phase::lost}) {
    const auto state = state_from(example_with("phase", wire::name_of(phase)));
    REQUIRE(state);
    CHECK(state->phase == phase);
  }
  for (const EndKind end : {EndKind::none, EndKind::exit, EndKind::signal, EndKind::unknown}) {
    const auto state = state_from(example_with("end", wire::name_of(end)));
    REQUIRE(state);
    CHECK(state->end == end);
  }
  for (const Cause cause : {Cause::none, Cause::timeout, Cause::cancelled, Cause::terminated}) {
    const auto state = state_from(example_with("cause", wire::name_of(cause)));
    REQUIRE(state);
    CHECK(state->cause == cause);
  }
}

TEST_CASE("process state: a missing field is rejected") {
  const json whole = wire::to_json(example());
  for (const auto& [key, value] : whole.items()) {
    CAPTURE(key);
    json lacking = whole;
    lacking.erase(key);
    CHECK(refused(lacking));
  }
}

TEST_CASE("process state: a field of another type is rejected") {
  const json whole = wire::to_json(example());
  for (const auto& [key, value] : whole.items()) {
    CAPTURE(key);
    CHECK(refused(example_with(key.c_str(), nullptr)));
    CHECK(refused(example_with(key.c_str(), json::object())));
    CHECK(refused(example_with(key.c_str(), 1.5)));
  }
  CHECK(refused(example_with("stdinOpen", 1)));
  CHECK(refused(example_with("pid", "1")));
}

TEST_CASE("process state: an unknown field is ignored") {
  CHECK(state_from(example_with("cpuMs", 17)));
}

TEST_CASE("process state: a value that is not an object is rejected") {
  for (const json& value : {json(), json(1), json("text"), json::array({1, 2}), json::array()}) {
    CHECK(refused(value));
  }
}

TEST_CASE("process state: an unknown phase, end or cause is rejected") {
  CHECK(refused(example_with("phase", "Running")));
  CHECK(refused(example_with("end", "")));
  CHECK(refused(example_with("cause", "oom")));
}

TEST_CASE("process state: a number that overflows its field is rejected, not wrapped") {
  CHECK(refused(example_with("endCode", std::int64_t{1} << 32)));
  CHECK(refused(example_with("endCode", -(std::int64_t{1} << 32))));
  CHECK(refused(example_with("pid", std::numeric_limits<std::uint64_t>::max())));
  CHECK(refused(example_with("idleMs", -1)));
}

TEST_CASE("process state: a number out of range is rejected") {
  constexpr std::uint64_t k_most = std::numeric_limits<std::uint64_t>::max();
  const auto over_time = static_cast<std::uint64_t>(wire::k_max_time_ms) + 1;
  const auto over_stream = wire::k_max_stream_bytes + 1;
  const std::vector<std::pair<const char*, json>> values = {
      {"endCode", -1},
      {"endCode", 256},
      {"idleMs", k_most},
      {"idleMs", over_time},
      {"pid", -1},
      {"pid", std::int64_t{1} << 31},
      {"startedAtMs", -1},
      {"startedAtMs", over_time},
      {"endedAtMs", over_time},
      {"ranMs", over_time},
      {"ranMs", -1},
      {"children", k_most},
      {"number", wire::k_max_process_number + 1},
      {"number", -1},
      {"out", {over_stream, 0U, 0U}},
      {"err", {k_most, k_most, k_most}},
      {"used", {over_time, 0U, 0U, 0U}},
      {"used", {0U, over_stream / 1024 + 1, 0U, 0U}},
      {"used", {0U, 0U, over_stream, 0U}},
      {"used", {0U, 0U, 0U, over_stream}},
      {"command", std::string(wire::k_max_state_text + 1, 'x')},
      {"path", std::string(wire::k_max_state_text + 1, 'x')},
  };
  for (const auto& [key, value] : values) {
    CAPTURE(key);
    CAPTURE(value.dump().substr(0, 60));
    CHECK(refused(example_with(key, value)));
  }
  CHECK(state_from(example_with("endCode", 255)));
  CHECK(state_from(example_with("used", {1U, 2U, 3U, 4U})));
  CHECK(state_from(example_with("idleMs", wire::k_max_time_ms)));
  CHECK(state_from(example_with("out", {wire::k_max_stream_bytes, 0U, 0U})));
}

TEST_CASE("process state: stream offsets are three integers in ascending order") {
  CHECK(state_from(example_with("out", json::parse("[0,0,0]"))));
  CHECK(state_from(example_with("out", json::parse("[7,0,7]"))));
  CHECK(refused(example_with("out", json::parse("[7,3,8]"))));
  CHECK(refused(example_with("out", json::parse("[7,4,3]"))));
  CHECK(refused(example_with("out", json::parse("[7,7]"))));
  CHECK(refused(example_with("err", json::parse("[7,7,7,7]"))));
  CHECK(refused(example_with("err", json::parse("[7,-1,7]"))));
  CHECK(refused(example_with("err", json::parse("[7.0,7.0,7.0]"))));
}

TEST_CASE("process id: proc_, digits, _, letters and digits") {
  CHECK(wire::is_process_id("proc_1_a"));
  CHECK(wire::is_process_id("proc_0123456789_azAZ09"));
  for (const std::string id :
       {"", "proc", "proc_", "proc_1", "proc_1_", "proc__a", "proc_a_1", "Proc_1_a", " proc_1_a", "proc_1_a ",
        "proc_1_a_b", "proc_1_a/b", "proc_1_..", "../proc_1_a", "proc_1_\xC3\xA4"}) {
    CAPTURE(id);
    CHECK_FALSE(wire::is_process_id(id));
  }
  CHECK_FALSE(wire::is_process_id(std::string_view("proc_1_a\0", 9)));
}

TEST_CASE("process id: at most 64 characters") {
  const std::string id = "proc_1_" + std::string(57, 'a');
  CHECK(wire::is_process_id(id));
  CHECK_FALSE(wire::is_process_id(id + "a"));
}

TEST_CASE("process state: the number is optional, because older agents send none") {
  CHECK(state_from(wire::to_json(example()))->number == 0);
  CHECK_FALSE(wire::to_json(example()).contains("number"));
  ProcessState numbered = example();
  numbered.number = 17;
  CHECK(state_from(wire::to_json(numbered))->number == 17);
}

TEST_CASE("process state: a short id is p and a number without leading zeros") {
  CHECK(wire::process_number_in("p1") == 1U);
  CHECK(wire::process_number_in("p999999999") == wire::k_max_process_number);
  for (const char* text : {"", "p", "p0", "p01", "P1", "p-1", "p+1", "p1x", "p 1", "1", "p1000000000", "proc_1_a",
                           "p99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(wire::process_number_in(text));
  }
}
