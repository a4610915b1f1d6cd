#pragma once

#include <cstddef>
#include <string>

namespace dockbridge::test {

inline std::string repeated(const std::string& text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

}  // namespace dockbridge::test
