#include "sandbox/liveness.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using sandbox::Liveness;

namespace {

const Clock::time_point k_opened{};

}  // namespace

TEST_CASE("liveness: a ping is due after 1 s if calls wait, otherwise after 15 s") {
  Liveness liveness(k_opened);
  CHECK_FALSE(liveness.is_ping_due(k_opened + seconds(1), true));
  CHECK(liveness.is_ping_due(k_opened + milliseconds(1001), true));
  CHECK_FALSE(liveness.is_ping_due(k_opened + seconds(15), false));
  CHECK(liveness.is_ping_due(k_opened + milliseconds(15'001), false));
  liveness.note_received(k_opened + seconds(1));
  CHECK_FALSE(liveness.is_ping_due(k_opened + seconds(2), true));
}

TEST_CASE("liveness: an agent is silent if a ping has no answer for 2 s") {
  Liveness liveness(k_opened);
  CHECK_FALSE(liveness.is_silent(k_opened + seconds(60)));
  liveness.note_ping(k_opened + seconds(60));
  CHECK_FALSE(liveness.is_ping_due(k_opened + seconds(120), true));
  CHECK_FALSE(liveness.is_silent(k_opened + seconds(62)));
  CHECK(liveness.is_silent(k_opened + milliseconds(62'001)));
  liveness.note_received(k_opened + seconds(63));
  CHECK_FALSE(liveness.is_silent(k_opened + seconds(120)));
  CHECK(liveness.is_ping_due(k_opened + seconds(120), true));
}

TEST_CASE("liveness: an agent that reads a long request is alive, but still owes the ping") {
  Liveness liveness(k_opened);
  liveness.note_part_written(k_opened + seconds(1));
  CHECK_FALSE(liveness.is_silent(k_opened + seconds(60)));
  liveness.note_ping(k_opened + seconds(2));
  liveness.note_part_written(k_opened + seconds(3));
  CHECK_FALSE(liveness.is_silent(k_opened + seconds(5)));
  CHECK(liveness.is_silent(k_opened + milliseconds(5001)));
}
