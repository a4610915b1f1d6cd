#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <string_view>
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

/// The number after a word at the start of a line in one of the kernel's files; 0 if it is not there.
std::uint64_t number_after(const std::string& path, std::string_view word);

}  // namespace dockbridge::agent
