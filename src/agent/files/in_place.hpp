#pragma once

#include <string>

#include "util/error.hpp"

namespace dockbridge::agent {

/// Makes a file hold what another one holds, where it is, for files that cannot be replaced. It returns when that is on
/// disk. Whoever looks meanwhile sees a mixture, and so does whoever comes after a crash.
Result<void> write_over(int file, int content, const std::string& path);

/// Whether a file is on its way from one content to another: the start of the new one, then what was there before. Not
/// so if it is the new one.
bool is_mixture(int file, int before, int after);

}  // namespace dockbridge::agent
