#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// How many processes of the container were killed so far because it ran out of memory; 0 if that cannot be told.
std::uint64_t out_of_memory_kills();

/// How soon this process is killed when memory runs out, as the kernel writes it.
std::string own_oom_score();
/// Where this may not be set, the kernel's own choice is as good.
void set_oom_score(std::string_view score);

}  // namespace dockbridge::agent
