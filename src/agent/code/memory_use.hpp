#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Memory that cannot be freed without ending a process, and its limit.
struct MemoryUse {
  std::uint64_t used = 0;
  std::uint64_t limit = 0;  ///< not 0
};

/// Memory use of the container if it has a limit, else of the machine. nullopt if neither is known. `root` is "/",
/// except in tests.
std::optional<MemoryUse> read_memory_use(const std::string& root = "/");

}  // namespace dockbridge::agent
