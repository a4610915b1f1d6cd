#include "agent/keeper/end_timers.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using agent::EndTimers;

namespace {

const Clock::time_point k_timers_start{};

}  // namespace

TEST_CASE("end timers: without a limit, nothing expires") {
  EndTimers timers;
  CHECK_FALSE(timers.next());
  CHECK_FALSE(timers.take_timeout(k_timers_start + seconds(1'000'000)));
  CHECK_FALSE(timers.take_kill(k_timers_start + seconds(1'000'000)));
}

TEST_CASE("end timers: the run time ends once, and frozen time does not count") {
  EndTimers timers;
  timers.limit_runtime(k_timers_start + seconds(10));
  timers.postpone(seconds(5));
  CHECK(timers.next() == k_timers_start + seconds(15));
  CHECK_FALSE(timers.take_timeout(k_timers_start + milliseconds(14'999)));
  CHECK(timers.take_timeout(k_timers_start + seconds(15)));
  CHECK_FALSE(timers.take_timeout(k_timers_start + seconds(16)));
  CHECK_FALSE(timers.limits_runtime());
}

TEST_CASE("end timers: a command that has ended has no timeout, but is still killed") {
  EndTimers timers;
  timers.limit_runtime(k_timers_start + seconds(10));
  timers.kill_at(k_timers_start + seconds(20));
  timers.note_end();
  CHECK_FALSE(timers.take_timeout(k_timers_start + seconds(11)));
  CHECK(timers.next() == k_timers_start + seconds(20));
}

TEST_CASE("end timers: the earliest kill counts, and it is repeated") {
  EndTimers timers;
  timers.limit_runtime(k_timers_start + seconds(5));
  timers.kill_at(k_timers_start + seconds(2));
  timers.kill_at(k_timers_start + seconds(1));
  timers.kill_at(k_timers_start + seconds(3));
  CHECK(timers.is_ending());
  CHECK(timers.next() == k_timers_start + seconds(1));
  CHECK_FALSE(timers.take_kill(k_timers_start + milliseconds(999)));
  CHECK(timers.take_kill(k_timers_start + seconds(1)));
  CHECK_FALSE(timers.take_kill(k_timers_start + milliseconds(1049)));
  CHECK(timers.take_kill(k_timers_start + milliseconds(1050)));
  CHECK(timers.next() == k_timers_start + milliseconds(1100));
}
