#include "util/json_depth.hpp"

#include <cstddef>

namespace dockbridge {

bool nests_deeper_than(std::string_view json, int levels) {
  int depth = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      i = json.find_first_of("\"\\", i + 1);
      while (i < json.size() && json[i] == '\\') {
        i = json.find_first_of("\"\\", i + 2);
      }
      if (i >= json.size()) {
        return false;  // a text without an end: not JSON
      }
    } else if (c == '{' || c == '[') {
      if (++depth > levels) {
        return true;
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace dockbridge
