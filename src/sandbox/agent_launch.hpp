#pragma once

#include <memory>
#include <string>

#include "sandbox/channel.hpp"
#include "sandbox/connection.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"
#include "wire/retention.hpp"

namespace dockbridge::sandbox {

/// Starts the agent in a running container, putting it there first if it is not, and connects to it.
/// Places are tried in turn; only the agent's own greeting counts as success. `workdir` is the last resort, for
/// containers whose root file system is read-only.
Result<std::unique_ptr<Connection>> launch_agent(Channel& channel, const ContainerRun& run, const std::string& workdir,
                                                 const wire::Retention& retention, Deadline deadline);

}  // namespace dockbridge::sandbox
