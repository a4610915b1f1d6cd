#pragma once

#include <string>
#include <vector>

#include "support/temporary_directory.hpp"

namespace dockbridge::test {

/// A container made for one test and removed with it. Needs a running engine and the test images; test.sh makes both.
/// A directory of the host is its /app, as dockbridge would make it, unless the options mount something else there.
class Container {
 public:
  explicit Container(const std::string& image = "dockbridge-test:slim", const std::vector<std::string>& options = {});
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  [[nodiscard]] const std::string& name() const { return m_name; }
  /// `docker exec` of a command, for looking at the container by another road; returns what it printed.
  [[nodiscard]] std::string sh(const std::string& script) const;
  /// How many processes in it are zombies.
  [[nodiscard]] int zombies() const;
  /// The pids, as seen from the host, of the processes in it whose name matches.
  [[nodiscard]] std::vector<int> pids_of(const std::string& name) const;

 private:
  TemporaryDirectory m_workspace;
  std::string m_name;
};

}  // namespace dockbridge::test
