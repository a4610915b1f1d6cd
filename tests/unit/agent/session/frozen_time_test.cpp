#include "agent/session/frozen_time.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using agent::FrozenTime;

namespace {

/// So many seconds after the tests began.
Clock::time_point at(double time) {
  return Clock::time_point() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
}

}  // namespace

TEST_CASE("a wait that is over in time, or a little late, was not frozen") {
  FrozenTime frozen;
  frozen.note_wait(at(0), seconds(1), at(0.3));
  frozen.note_wait(at(1), seconds(1), at(2.9));
  CHECK(frozen.between(at(0), at(10)) == milliseconds(0));
}

TEST_CASE("of a wait that was over much too late, what was too much was frozen") {
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

TEST_CASE("very many spans do not make it grow: the last ones count") {
  FrozenTime frozen;
  for (int i = 0; i < 5000; ++i) {
    frozen.note_wait(at(10 * i), seconds(0), at(10 * i + 2));
  }
  CHECK(frozen.between(at(0), at(100'000)) == seconds(2000));
  CHECK(frozen.between(at(49'900), at(50'000)) == seconds(20));
}
