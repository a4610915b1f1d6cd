#include "agent/session/frozen_time.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using agent::FrozenTime;

namespace {

/// This number of seconds after the epoch of the clock.
Clock::time_point at(double time) {
  return Clock::time_point() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
}

}  // namespace

TEST_CASE("frozen time: a wait that ends in time or a little late is not frozen") {
  FrozenTime frozen;
  frozen.note_wait(at(0), seconds(1), at(0.3));
  frozen.note_wait(at(1), seconds(1), at(2.9));
  CHECK(frozen.between(at(0), at(10)) == milliseconds(0));
}

TEST_CASE("frozen time: the excess of a long wait counts as frozen") {
  FrozenTime frozen;
  frozen.note_wait(at(10), seconds(1), at(61));
  CHECK(frozen.between(at(0), at(100)) == seconds(50));
  CHECK(frozen.between(at(31), at(100)) == seconds(30));
  CHECK(frozen.between(at(0), at(31)) == seconds(20));
  CHECK(frozen.between(at(20), at(30)) == seconds(10));
  CHECK(frozen.between(at(61), at(100)) == seconds(0));
  frozen.note_wait(at(70), seconds(0), at(80));
  CHECK(frozen.between(at(31), at(100)) == seconds(40));
}

TEST_CASE("frozen time: the number of spans is bounded, the latest are kept") {
  FrozenTime frozen;
  for (int i = 0; i < 5000; ++i) {
    frozen.note_wait(at(10 * i), seconds(0), at(10 * i + 2));
  }
  CHECK(frozen.between(at(0), at(100'000)) == seconds(2000));
  CHECK(frozen.between(at(49'900), at(50'000)) == seconds(20));
}
