#pragma once

#include <string>

#include "error/error.hpp"

namespace dockbridge::agent {

/// Overwrites a file with the content of another one, for files that cannot be replaced. Returns when it is on disk.
/// Until then, and after a crash, the file has a mixture of both contents.
Result<void> write_over(int file, int content, const std::string& path);

/// Whether a file is between two contents: it begins with restored old bytes, followed by new bytes, followed by old
/// bytes that were not overwritten. False if it has one of the two contents.
bool is_mixture(int file, int before, int after);

/// Whether a file has the new content, or was partly restored from it. False if it has the old content.
bool needs_restore(int file, int before, int after);

}  // namespace dockbridge::agent
