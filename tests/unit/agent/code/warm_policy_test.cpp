#include "agent/code/warm_policy.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using agent::WarmPolicy;
using std::chrono::microseconds;

namespace {

const Clock::time_point k_reply_time = Clock::time_point(seconds(1000));

}  // namespace

TEST_CASE("warm policy: nothing is started before the first session") {
  CHECK_FALSE(WarmPolicy().next_launch(0));
}

TEST_CASE("warm policy: an interpreter is started right after the reply") {
  WarmPolicy policy;
  policy.note_start(1);
  CHECK_FALSE(policy.next_launch(0));
  policy.note_reply(k_reply_time);
  const auto next = policy.next_launch(0);
  REQUIRE(next);
  CHECK(*next > k_reply_time);
  CHECK(*next - k_reply_time < milliseconds(10));
  CHECK_FALSE(policy.next_launch(1));
}

TEST_CASE("warm policy: several interpreters are started one after the other") {
  WarmPolicy policy;
  policy.note_start(3);
  policy.note_reply(k_reply_time);
  policy.note_launch(k_reply_time + microseconds(1500));
  const auto next = policy.next_launch(1);
  REQUIRE(next);
  CHECK(*next - k_reply_time >= milliseconds(20));
  CHECK_FALSE(policy.next_launch(3));
}

TEST_CASE("warm policy: a session that wants no interpreter stops the starts") {
  WarmPolicy policy;
  policy.note_start(1);
  policy.note_reply(k_reply_time);
  policy.note_start(0);
  policy.note_reply(k_reply_time);
  CHECK_FALSE(policy.next_launch(0));
}

TEST_CASE("warm policy: nothing is started for a while after memory was scarce") {
  WarmPolicy policy;
  policy.note_start(1);
  policy.note_reply(k_reply_time);
  policy.note_pressure(k_reply_time);
  CHECK(*policy.next_launch(0) - k_reply_time >= seconds(30));
  policy.note_start(1);
  policy.note_reply(k_reply_time + microseconds(1));
  CHECK(*policy.next_launch(0) - k_reply_time >= seconds(30));
}
