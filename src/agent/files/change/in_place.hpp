#pragma once

#include <string>

#include "error/error.hpp"

namespace dockbridge::agent {

/// Makes a file hold what another one holds, where it is, for files that cannot be replaced. It returns when that is on
/// disk. Whoever looks meanwhile sees a mixture, and so does whoever comes after a crash.
Result<void> write_over(int file, int content, const std::string& path);

/// Whether a file is on its way from one content to another, or back: the start of the old one as far as it was put
/// back, the new one as far as it was written, and what was there before. Not so if it is one of the two.
bool is_mixture(int file, int before, int after);

/// Whether a file has the new content, or is on its way from that back to the old one. Not so if it has the old one.
bool is_to_put_back(int file, int before, int after);

}  // namespace dockbridge::agent
