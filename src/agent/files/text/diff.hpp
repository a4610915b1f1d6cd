#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dockbridge::agent {

struct DiffLimits {
  std::size_t context = 3;        ///< lines shown around a change
  std::size_t max_bytes = 8'000;  ///< of the text, without the notes on omissions and the line that exceeds it
};

struct Diff {
  std::string text;         ///< empty if nothing has changed
  std::size_t added = 0;    ///< lines, with those that are not shown
  std::size_t removed = 0;  ///< likewise
  bool cut = false;         ///< notes in square brackets state the omissions, so patch(1) rejects the text
};

/// Compares two texts line by line. The diff has the unified format of patch(1), unless it is cut. Time and memory are
/// bounded: where the texts differ too much for an exact answer, a whole region is shown as replaced.
Diff unified_diff(std::string_view before, std::string_view after, const std::string& path,
                  const DiffLimits& limits = {});

}  // namespace dockbridge::agent
