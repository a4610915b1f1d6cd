#pragma once

#include <cstddef>
#include <string>

namespace dockbridge {

/// Unpredictable bytes from the kernel.
std::string random_bytes(std::size_t count);
/// Unpredictable letters and digits.
std::string random_token(std::size_t length);

}  // namespace dockbridge
