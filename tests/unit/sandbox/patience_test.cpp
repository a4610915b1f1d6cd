#include "sandbox/patience.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using sandbox::judge;
using sandbox::Patience;
using sandbox::Verdict;

namespace {

constexpr Patience k_patience{milliseconds(20'000), milliseconds(600'000)};

}  // namespace

TEST_CASE("a process that speaks is waited for until its next silence could end") {
  const auto step = judge(k_patience, milliseconds(100'000), milliseconds(0));
  CHECK(step.verdict == Verdict::keep_waiting);
  CHECK(step.next == milliseconds(20'000));
}

TEST_CASE("a process that has been quiet for a while is waited for as long as is left") {
  const auto step = judge(k_patience, milliseconds(100'000), milliseconds(15'000));
  CHECK(step.verdict == Verdict::keep_waiting);
  CHECK(step.next == milliseconds(5'000));
}

TEST_CASE("a process that has been quiet for the whole time is left") {
  CHECK(judge(k_patience, milliseconds(20'000), milliseconds(19'999)).verdict == Verdict::keep_waiting);
  CHECK(judge(k_patience, milliseconds(20'000), milliseconds(20'000)).verdict == Verdict::quiet);
  CHECK(judge(k_patience, milliseconds(100'000), milliseconds(99'000)).verdict == Verdict::quiet);
}

TEST_CASE("quiet before the call began does not count against it") {
  const auto step = judge(k_patience, milliseconds(1'000), milliseconds(3'600'000));
  CHECK(step.verdict == Verdict::keep_waiting);
  CHECK(step.next == milliseconds(19'000));
}

TEST_CASE("the whole patience ends the wait even while the process speaks") {
  const auto step = judge(k_patience, milliseconds(595'000), milliseconds(0));
  CHECK(step.verdict == Verdict::keep_waiting);
  CHECK(step.next == milliseconds(5'000));
  CHECK(judge(k_patience, milliseconds(600'000), milliseconds(0)).verdict == Verdict::waited_enough);
  CHECK(judge(k_patience, milliseconds(700'000), milliseconds(700'000)).verdict == Verdict::waited_enough);
}

TEST_CASE("no patience is none") {
  CHECK(judge({milliseconds(0), milliseconds(1000)}, {}, {}).verdict == Verdict::quiet);
  CHECK(judge({milliseconds(1000), milliseconds(0)}, {}, {}).verdict == Verdict::waited_enough);
}

TEST_CASE("endless patience with silence is bounded by the whole") {
  const auto step = judge({milliseconds::max(), milliseconds(60'000)}, milliseconds(10'000), milliseconds(10'000));
  CHECK(step.verdict == Verdict::keep_waiting);
  CHECK(step.next == milliseconds(50'000));
}

TEST_CASE("whoever waits step by step comes to an end") {
  milliseconds waited{0};
  int steps = 0;
  for (auto step = judge(k_patience, waited, {}); step.verdict == Verdict::keep_waiting;
       step = judge(k_patience, waited, {})) {
    REQUIRE(step.next > milliseconds(0));
    REQUIRE(++steps <= 30);
    waited += step.next;
  }
  CHECK(waited == milliseconds(600'000));
}
