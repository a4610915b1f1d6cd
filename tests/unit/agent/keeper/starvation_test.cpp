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

TEST_CASE("the first look says where counting begins, the next ones what was waited since") {
  Starvation starvation;
  CHECK(starvation.so_far() == milliseconds(0));
  starvation.note(at(seconds(0)), {{1, seconds(100)}});
  CHECK(starvation.so_far() == milliseconds(0));
  starvation.note(at(seconds(1)), {{1, milliseconds(100'700)}});
  CHECK(starvation.so_far() == milliseconds(700));
  starvation.note(at(seconds(2)), {{1, milliseconds(100'700)}});
  CHECK(starvation.so_far() == milliseconds(700));
}

TEST_CASE("of many threads the one that waited longest counts, not all of them together") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(5)}, {2, seconds(50)}, {3, seconds(0)}});
  starvation.note(at(seconds(1)), {{1, milliseconds(5'600)}, {2, milliseconds(50'500)}, {3, milliseconds(300)}});
  CHECK(starvation.so_far() == milliseconds(600));
  starvation.note(at(seconds(2)), {{1, milliseconds(5'600)}, {2, milliseconds(50'700)}});
  CHECK(starvation.so_far() == milliseconds(800));
}

TEST_CASE("a thread that is new, or has the number of one that ended, counts from its beginning") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(9)}});
  starvation.note(at(seconds(1)), {{1, milliseconds(200)}, {2, milliseconds(300)}});
  CHECK(starvation.so_far() == milliseconds(300));
}

TEST_CASE("of what begins with the counting, all counts") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {});
  starvation.note(at(seconds(1)), {{1, milliseconds(400)}});
  CHECK(starvation.so_far() == milliseconds(400));
}

TEST_CASE("no more was starved than time has passed, though a long wait is told of only when it is over") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(0)}});
  starvation.note(at(seconds(1)), {{1, seconds(0)}});
  starvation.note(at(seconds(2)), {{1, milliseconds(1900)}});
  CHECK(starvation.so_far() == milliseconds(1900));
  starvation.note(at(seconds(3)), {{1, seconds(40)}});
  CHECK(starvation.so_far() == seconds(3));
}

TEST_CASE("what was before a sign of life is forgotten") {
  Starvation starvation;
  starvation.note(at(seconds(0)), {{1, seconds(0)}});
  starvation.note(at(seconds(1)), {{1, milliseconds(900)}});
  starvation.forget();
  CHECK(starvation.so_far() == milliseconds(0));
  starvation.note(at(seconds(2)), {{1, milliseconds(1800)}});
  CHECK(starvation.so_far() == milliseconds(0));
  starvation.note(at(seconds(3)), {{1, milliseconds(1900)}});
  CHECK(starvation.so_far() == milliseconds(100));
}

TEST_CASE("the kernel tells how long each thread of a process has waited") {
  agent::ProcessEntry self;
  self.pid = ::getpid();
  const CpuWaits waits = agent::cpu_waits({self});
  CHECK(waits.contains(::getpid()));
}
