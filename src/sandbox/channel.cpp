#include "sandbox/channel.hpp"

namespace dockbridge::sandbox {

std::uint32_t ContainerRun::generation() const {
  // FNV-1a: stable across versions and machines, so that a later server recognizes the ids of an earlier one.
  std::uint32_t hash = 2166136261U;
  for (const std::string* part : {&id, &started_at}) {
    for (const char c : *part) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    }
  }
  return hash;
}

}  // namespace dockbridge::sandbox
