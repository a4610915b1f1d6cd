#pragma once

#include <stdexcept>

#include "util/clock.hpp"

namespace dockbridge::bench {

struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// From now on SIGINT, SIGTERM, SIGHUP and the end of `limit` unwind the program by way of the next
/// `check_interruption` instead of ending it where it stands, so that nothing it started is left behind.
void unwind_on_signals(seconds limit);

/// Throws Interrupted, once per signal: what then cleans up can wait for its own children.
void check_interruption();

}  // namespace dockbridge::bench
