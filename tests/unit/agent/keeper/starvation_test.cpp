#include "agent/keeper/starvation.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace dockbridge;
using agent::CpuWaits;
using agent::Starvation;

namespace {

Clock::time_point at(milliseconds time) {
  return Clock::time_point() + time;
}

}  // namespace

TEST_CASE("starvation: the first note is the baseline for the next ones") {
  Starvation starvation;
  CHECK(starvation.total() == milliseconds(0));
  starvation.note(at(seconds(0)), {{1, seconds(100)}});
  CHECK(starvation.total() == milliseconds(0));
  starvation.note(at(seconds(1)), {{1, milliseconds(100'700)}});
  CHECK(starvation.total() == milliseconds(700));
  starvation.note(at(seconds(2)), {{1, milliseconds(100'700)}});
  CHECK(starvation.total() == milliseconds(700));
}

TEST_CASE("starvation: the longest wait of a thread counts, not the sum") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(5)}, {2, seconds(50)}, {3, seconds(0)}});
  starvation.note(at(seconds(1)), {{1, milliseconds(5'600)}, {2, milliseconds(50'500)}, {3, milliseconds(300)}});
  CHECK(starvation.total() == milliseconds(600));
  starvation.note(at(seconds(2)), {{1, milliseconds(5'600)}, {2, milliseconds(50'700)}});
  CHECK(starvation.total() == milliseconds(800));
}

TEST_CASE("starvation: a new thread, or one with a reused id, counts from its start") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(9)}});
  starvation.note(at(seconds(1)), {{1, milliseconds(200)}, {2, milliseconds(300)}});
  CHECK(starvation.total() == milliseconds(300));
}

TEST_CASE("starvation: counts everything of a thread that starts after the baseline") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {});
  starvation.note(at(seconds(1)), {{1, milliseconds(400)}});
  CHECK(starvation.total() == milliseconds(400));
}

TEST_CASE("starvation: never exceeds the time since the baseline") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(0)}});
  starvation.note(at(seconds(1)), {{1, seconds(0)}});
  starvation.note(at(seconds(2)), {{1, milliseconds(1900)}});
  CHECK(starvation.total() == milliseconds(1900));
  starvation.note(at(seconds(3)), {{1, seconds(40)}});
  CHECK(starvation.total() == seconds(3));
}

TEST_CASE("starvation: activity resets it") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(0)}});
  starvation.note(at(seconds(1)), {{1, milliseconds(900)}});
  starvation.reset();
  CHECK(starvation.total() == milliseconds(0));
  starvation.note(at(seconds(2)), {{1, milliseconds(1800)}});
  CHECK(starvation.total() == milliseconds(0));
  starvation.note(at(seconds(3)), {{1, milliseconds(1900)}});
  CHECK(starvation.total() == milliseconds(100));
}

TEST_CASE("starvation: the kernel reports the waits of each thread") {
  agent::ProcessEntry self;
  self.pid = ::getpid();
  const CpuWaits waits = agent::cpu_waits({self});
  CHECK(waits.contains(::getpid()));
}
