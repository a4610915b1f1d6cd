#pragma once

#include <string>
#include <vector>

namespace dockbridge::test {

/// A container made for one test and removed with it. Needs a running engine and the test images; test.sh makes both.
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
  std::string m_name;
};

}  // namespace dockbridge::test
