#include "agent/program_path.hpp"

#include <unistd.h>

#include <algorithm>

namespace dockbridge::agent {

std::string find_program(const std::string& name, std::string_view search_path, const std::string& cwd) {
  if (name.find('/') != std::string::npos) {
    return name;
  }
  const std::string directories = std::string(search_path) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
  for (std::size_t begin = 0; begin <= directories.size();) {
    const std::size_t end = std::min(directories.find(':', begin), directories.size());
    if (end > begin) {
      std::string path = directories.substr(begin, end - begin) + "/" + name;
      if (path.front() != '/' && !cwd.empty()) {
        path.insert(0, cwd + "/");
      }
      if (::access(path.c_str(), X_OK) == 0) {
        return path;
      }
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace dockbridge::agent
