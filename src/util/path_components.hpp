#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge {

/// Symbolic links that are followed in one path. The kernel has the same limit.
inline constexpr std::size_t k_max_links = 40;

/// Pushes the components of a path on a stack, the first one on top. Empty components and "." are left out.
inline void push_path_components(std::string_view path, std::vector<std::string>& pending) {
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (!name.empty() && name != ".") {
      pending.emplace_back(name);
    }
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

}  // namespace dockbridge
