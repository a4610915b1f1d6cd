#pragma once

#include <cstdint>
#include <string>

#include "util/clock.hpp"

namespace dockbridge::agent {

/// A moment that can be kept on disk. The wall clock is for people: it may be put forward or back at any time. What is
/// reckoned is reckoned in the time since the machine was started, which all processes of all its containers share.
struct Moment {
  std::int64_t unix_ms = 0;
  std::int64_t uptime_ms = 0;
  std::string boot{};  ///< which start of the machine is meant; empty: an older version did not say
};

Moment now();

/// How long before `now` it was. Of another start of the machine only the wall clock knows, and it may say less than 0.
milliseconds age(const Moment& then, const Moment& now);

}  // namespace dockbridge::agent
