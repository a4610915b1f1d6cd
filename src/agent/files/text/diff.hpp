#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dockbridge::agent {

struct DiffLimits {
  std::size_t context = 3;            ///< lines shown around a change
  std::size_t max_bytes = 16 * 1024;  ///< of the text, apart from the notes on what was left out
};

struct Diff {
  std::string text;         ///< empty if nothing has changed
  std::size_t added = 0;    ///< lines, those not shown included
  std::size_t removed = 0;  ///< likewise
  bool cut = false;         ///< the text is for people only; notes in square brackets say what was left out
};

/// What has changed, line by line, in the unified format that patch(1) takes (unless cut). Time and memory are bounded:
/// where texts differ too much for an exact answer, a whole region is shown as replaced.
Diff unified_diff(std::string_view before, std::string_view after, const std::string& path,
                  const DiffLimits& limits = {});

}  // namespace dockbridge::agent
