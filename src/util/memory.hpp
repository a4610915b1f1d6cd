#pragma once

#include <malloc.h>

#include <cstddef>

namespace dockbridge {

/// Makes the allocator keep up to `bytes` of freed memory for each heap, because memory from the kernel costs a page
/// fault per page. Blocks larger than that are returned to the kernel at once.
inline void keep_freed_memory(std::size_t bytes) {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(bytes));
}

}  // namespace dockbridge
