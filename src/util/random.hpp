#pragma once

#include <cstddef>
#include <string>

namespace dockbridge {

/// Bytes that nobody can guess, from the kernel.
std::string random_bytes(std::size_t count);
/// The same as letters and digits.
std::string random_token(std::size_t length);

}  // namespace dockbridge
