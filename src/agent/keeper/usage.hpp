#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <vector>

#include "agent/keeper/process_tree.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// What a process that was reaped has used, those it reaped itself included.
wire::Usage usage_of(const rusage& reaped);
/// What live processes have used so far, and those they have reaped.
wire::Usage usage_of(const std::vector<ProcessEntry>& processes);
/// Both together: times and bytes add up, of peaks the higher one counts.
wire::Usage together(const wire::Usage& a, const wire::Usage& b);

/// How many processes of the container were killed so far because it ran out of memory; 0 if that cannot be told.
std::uint64_t out_of_memory_kills();

}  // namespace dockbridge::agent
