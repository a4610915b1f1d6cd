#pragma once

#include <cstddef>
#include <string>

namespace dockbridge {

/// Letters and digits that cannot be guessed.
std::string random_token(std::size_t length);

}  // namespace dockbridge
