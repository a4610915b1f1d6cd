#pragma once

#include <malloc.h>

#include <cstddef>

namespace dockbridge {

/// What is freed stays with this process for the next request, up to `bytes` for each heap that threads share: to give
/// it back and take it again costs a page fault per page. What is larger than that goes back at once.
inline void keep_freed_memory(std::size_t bytes) {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(bytes));
}

}  // namespace dockbridge
