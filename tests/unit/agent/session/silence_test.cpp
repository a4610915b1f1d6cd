#include "agent/session/silence.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using agent::SilenceLimit;

namespace {

constexpr SilenceLimit k_plain{seconds(20), seconds(20)};
constexpr SilenceLimit k_stretched{seconds(20), seconds(60)};

}  // namespace

TEST_CASE("silence: a fixed limit ignores starvation") {
  CHECK_FALSE(k_plain.is_reached(milliseconds(19'999), seconds(0)));
  CHECK(k_plain.is_reached(seconds(20), seconds(0)));
  CHECK(k_plain.is_reached(seconds(20), seconds(19)));
  CHECK_FALSE(k_plain.heeds_starvation());
}

TEST_CASE("silence: a stretched limit leaves out starvation, up to its maximum") {
  CHECK(k_stretched.heeds_starvation());
  CHECK(k_stretched.is_reached(seconds(20), seconds(0)));
  CHECK_FALSE(k_stretched.is_reached(seconds(20), milliseconds(1)));
  CHECK_FALSE(k_stretched.is_reached(milliseconds(34'999), seconds(15)));
  CHECK(k_stretched.is_reached(seconds(35), seconds(15)));
  CHECK_FALSE(k_stretched.is_reached(milliseconds(59'999), seconds(55)));
  CHECK(k_stretched.is_reached(seconds(60), seconds(55)));
}

TEST_CASE("silence: a maximum below the usual limit has no effect") {
  constexpr SilenceLimit shorter{seconds(20), seconds(1)};
  CHECK_FALSE(shorter.is_reached(seconds(19), seconds(0)));
  CHECK(shorter.is_reached(seconds(20), seconds(19)));
}

TEST_CASE("silence: the next check is at the limit, or earlier to measure starvation") {
  CHECK(k_plain.next_check(seconds(5), seconds(3)) == seconds(15));
  CHECK(k_stretched.next_check(seconds(5), seconds(0)) == seconds(1));
  CHECK(k_stretched.next_check(milliseconds(19'900), seconds(0)) == milliseconds(100));
  CHECK(k_stretched.next_check(milliseconds(22'900), seconds(3)) == milliseconds(100));
  CHECK(k_stretched.next_check(milliseconds(59'900), seconds(50)) == milliseconds(100));
  constexpr SilenceLimit brief{milliseconds(200), milliseconds(400)};
  CHECK(brief.next_check(seconds(0), seconds(0)) == milliseconds(50));
}
