#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Number of processes of the container that were killed for memory so far; 0 if that is unknown.
std::uint64_t out_of_memory_kills();

/// The OOM score adjustment of this process, as the kernel writes it.
std::string own_oom_score();
/// Errors are ignored: without permission, the kernel's default applies.
void set_oom_score(std::string_view score);

}  // namespace dockbridge::agent
