#pragma once

#include <cstdint>

namespace dockbridge::agent {

/// Whether something listens on this TCP port in the container, on any address.
bool is_port_open(std::uint16_t port);

}  // namespace dockbridge::agent
