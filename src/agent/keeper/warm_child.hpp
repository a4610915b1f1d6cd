#pragma once

#include <sys/types.h>

#include "agent/control/assignment.hpp"
#include "agent/keeper/side_channel.hpp"
#include "agent/keeper/streams.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// A command that was started before its process exists. What it writes waits in its pipes and its side channel.
struct WarmChild {
  pid_t pid = 0;
  Streams streams;
  SideSocket side;
};

/// Starts the command of an assignment without a process, with `pipes`.
Result<WarmChild> start_warm_child(ChildSpec spec, Streams pipes);

}  // namespace dockbridge::agent
