#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace dockbridge::agent {

/// Like std::string_view::find, but in linear time for any text.
inline std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0) {
  const void* found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace dockbridge::agent
