#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_tree.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// Usage of a reaped process, including the processes that it has reaped.
wire::Usage usage_of(const rusage& reaped);
/// Usage of live processes until now, including the processes that they have reaped.
wire::Usage usage_of(const std::vector<ProcessEntry>& processes);
/// Times and bytes are added. The peak is the higher of both.
wire::Usage sum_of(const wire::Usage& a, const wire::Usage& b);

/// The number after a word at the start of a line in a file of the kernel; 0 if there is none.
std::uint64_t number_after(const std::string& path, std::string_view word);

}  // namespace dockbridge::agent
