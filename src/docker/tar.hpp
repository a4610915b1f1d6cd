#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::docker {

struct TarEntry {
  std::string name;  ///< below 100 bytes; a final '/' makes it a directory
  unsigned mode = 0644;
  std::string_view content;
};

/// An archive in the ustar format, owned by root, that is the same for the same entries.
std::string make_tar(const std::vector<TarEntry>& entries);

}  // namespace dockbridge::docker
