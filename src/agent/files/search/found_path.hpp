#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/files/search/file_type.hpp"
#include "agent/files/search/path_order.hpp"
#include "agent/files/search/tree_walk.hpp"

namespace dockbridge::agent {

/// Something that a walk has come by, in the order of a page.
struct FoundPath {
  std::int64_t rank = 0;  // before the path
  std::string path;
  FileType type = FileType::unknown;

  bool operator<(const FoundPath& other) const {
    return rank != other.rank ? rank < other.rank : path_less(path, other.path);
  }
  [[nodiscard]] std::size_t bytes() const { return path.size() + sizeof(FoundPath); }
};

/// Entries `offset` to `offset + max` of all that is beneath a directory and wanted, and how many those are.
struct FoundPage {
  std::vector<FoundPath> paths;
  std::uint64_t total = 0;
  WalkTotals walked;
};

/// `rank_of` tells whether an entry is wanted, and sets its rank; it is called by several threads.
FoundPage find_page(int start_fd, const WalkOptions& options, unsigned threads, std::uint64_t offset, std::size_t max,
                    const std::function<bool(const WalkEntry&, std::int64_t& rank)>& rank_of);

}  // namespace dockbridge::agent
