#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace dockbridge::agent {

/// A process that listens on a TCP port of the container.
struct PortOwner {
  pid_t pid = 0;        ///< 0 if it cannot be determined, as for a process of another container
  std::string command;  ///< command line, cut to a maximum length
  std::string process;  ///< the id of the process that it belongs to; empty if none
};

/// Whether something listens on this TCP port in the container, on any address.
bool is_port_open(std::uint16_t port);

/// The process that listens on an open port. If several do, one that belongs to `process` is preferred.
PortOwner find_listener(std::uint16_t port, const std::string& process);

}  // namespace dockbridge::agent
