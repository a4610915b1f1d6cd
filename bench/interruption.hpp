#pragma once

#include <stdexcept>

#include "util/clock.hpp"

namespace dockbridge::bench {

struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// From now on SIGINT, SIGTERM, SIGHUP and the end of `limit` make the next `check_interruption` throw instead of
/// ending the program at once, so that it can stop everything that it started.
void unwind_on_signals(seconds limit);

/// Throws Interrupted, once per signal, so the cleanup can wait for its own children.
void check_interruption();

}  // namespace dockbridge::bench
