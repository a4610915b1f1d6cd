#include "agent/keeper/activity_monitor.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using agent::ActivityMonitor;
using agent::Links;
using agent::StatePacket;
using agent::TreeState;

namespace {

const Clock::time_point k_start{};

TreeState waiting_tree() {
  TreeState tree;
  tree.input_wait = {.waits = wire::WaitsForInput::yes, .is_alone = true};
  tree.processes = 2;
  tree.used.cpu_ms = 5;
  return tree;
}

StatePacket described(const ActivityMonitor& activity, Clock::time_point now) {
  StatePacket state;
  state.used.cpu_ms = 10;
  activity.describe(state, now);
  return state;
}

}  // namespace

TEST_CASE("activity monitor: examinations become rarer until there is activity") {
  const Links links;
  ActivityMonitor activity(links);
  activity.begin(k_start);
  auto now = activity.next_examination();
  CHECK(now == k_start + milliseconds(100));
  for (const int interval : {200, 400, 800, 1600, 2000, 2000}) {
    activity.note_examination(now, {});
    CHECK(activity.next_examination() - now == milliseconds(interval));
    now = activity.next_examination();
  }
  activity.note_output("text", now);
  CHECK(activity.next_examination() == now + milliseconds(100));
  activity.postpone(seconds(7));
  CHECK(activity.next_examination() == now + milliseconds(7100));
}

TEST_CASE("activity monitor: a session that awaits an answer shortens the intervals") {
  Links links;
  ActivityMonitor activity(links);
  activity.begin(k_start);
  links.add_first(Fd(), true);
  activity.restart_intervals();
  CHECK(activity.next_examination() == k_start + milliseconds(100));
  links.all().front().watched_events = agent::k_watch_answer;
  activity.restart_intervals();
  CHECK(activity.next_examination() == k_start + milliseconds(2));
}

TEST_CASE("activity monitor: a wait for input ends with the next output") {
  const Links links;
  ActivityMonitor activity(links);
  activity.begin(k_start);
  CHECK(activity.events() == 0);
  activity.note_examination(k_start + milliseconds(100), waiting_tree());
  CHECK(activity.events() == (agent::k_watch_input | agent::k_watch_answer));
  const StatePacket state = described(activity, k_start + milliseconds(150));
  CHECK(state.idle_ms == 150);
  CHECK(state.children == 2);
  CHECK(state.used.cpu_ms == 15);
  activity.note_output("text", k_start + milliseconds(200));
  CHECK(activity.events() == 0);
  CHECK(described(activity, k_start + milliseconds(200)).idle_ms == 0);
}

TEST_CASE("activity monitor: time in which the command is stopped is not idle time") {
  const Links links;
  ActivityMonitor activity(links);
  activity.begin(k_start);
  TreeState stopped;
  stopped.is_paused = true;
  activity.note_examination(k_start + seconds(1), stopped);
  const StatePacket state = described(activity, k_start + seconds(3));
  CHECK(state.paused == 1);
  CHECK(state.idle_ms == 2000);
}

TEST_CASE("activity monitor: starvation counts from the start until there is activity") {
  const Links links;
  ActivityMonitor activity(links);
  activity.begin(k_start);
  TreeState starved;
  starved.cpu_waits = {{1, milliseconds(400)}};
  activity.note_examination(k_start + seconds(1), starved);
  CHECK(described(activity, k_start + seconds(1)).starved_ms == 400);
  activity.note_activity(k_start + seconds(2));
  CHECK(described(activity, k_start + seconds(2)).starved_ms == 0);
}
