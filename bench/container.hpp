#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace dockbridge::bench {

/// A process in the container, by its pid on the host.
struct ContainerProcess {
  pid_t pid = 0;
  std::string state;
  std::string name;
};

/// The session's and a keeper's process name, or its beginning.
constexpr const char* k_session_name = "dockbridge-sess";
constexpr const char* k_keeper_name = "dockbridge-keep";

/// A container of its own, removed when it goes out of scope; if that fails, it ends by itself after a while.
/// An empty directory of the host is its /app.
class Container {
 public:
  /// `options` are of `docker run`.
  explicit Container(const std::string& image, const std::vector<std::string>& options = {});
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  [[nodiscard]] const std::string& name() const { return m_name; }
  void copy_in(const std::string& host_path, const std::string& path) const;
  /// The command line that runs `argv` in it with `docker exec`.
  [[nodiscard]] std::vector<std::string> exec_command(const std::vector<std::string>& argv) const;
  /// The shell that dockbridge uses: bash if it exists, else sh.
  [[nodiscard]] std::string shell() const;

  [[nodiscard]] int zombies() const;
  /// The only process with this prefix of its name. Waits a little until it exists and others have ended.
  [[nodiscard]] pid_t pid_of(const std::string& name) const;

 private:
  [[nodiscard]] std::vector<ContainerProcess> processes() const;
  std::string m_name;
  std::filesystem::path m_workspace;
};

}  // namespace dockbridge::bench
