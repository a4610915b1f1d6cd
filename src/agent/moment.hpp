#pragma once

#include <cstdint>
#include <string>

#include "util/clock.hpp"

namespace dockbridge::agent {

/// A moment that can be stored. The wall clock is for display, because it may jump at any time. Calculations use the
/// uptime of the machine, which all processes of all its containers share.
struct Moment {
  std::int64_t unix_ms = 0;
  std::int64_t uptime_ms = 0;
  std::string boot{};  ///< id of the machine's boot; empty in a record of an older version
};

Moment now();

/// Time from `then` to `now`. Across boots it is measured by the wall clock, and may be negative.
milliseconds age(const Moment& then, const Moment& now);

}  // namespace dockbridge::agent
