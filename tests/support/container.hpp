#pragma once

#include <string>
#include <vector>

#include "support/temporary_directory.hpp"

namespace dockbridge::test {

/// A container for one test, which the destructor removes. Needs a running engine and the test images; test.sh provides
/// both. Its /app is a directory of the host, as in a container that dockbridge creates, unless the options mount
/// something else there.
class Container {
 public:
  explicit Container(const std::string& image = "dockbridge-test:slim", const std::vector<std::string>& options = {});
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  [[nodiscard]] const std::string& name() const { return m_name; }
  /// Runs a command with `docker exec`, independently of dockbridge. Returns its output.
  [[nodiscard]] std::string sh(const std::string& script) const;
  /// Number of zombies in the container.
  [[nodiscard]] int zombies() const;
  /// Host pids of the container's processes whose name matches.
  [[nodiscard]] std::vector<int> pids_of(const std::string& name) const;

 private:
  TemporaryDirectory m_workspace;
  std::string m_name;
};

}  // namespace dockbridge::test
