#pragma once

#include <functional>
#include <string>
#include <vector>

#include "docker/engine.hpp"

namespace dockbridge::docker {

/// The docker (or podman) command line.
class CliEngine : public Engine {
 public:
  /// `host` as in --docker-host; empty: whatever the command itself uses.
  CliEngine(std::string command, std::string host) : m_command(std::move(command)), m_host(std::move(host)) {}

  [[nodiscard]] std::string description() const override;
  Result<std::string> version(Deadline deadline) override;
  Result<nlohmann::json> inspect(const std::string& container, Deadline deadline) override;
  Result<bool> has_image(const std::string& image, Deadline deadline) override;
  Result<void> create(const ContainerSpec& spec, Deadline deadline) override;
  Result<void> start(const std::string& container, Deadline deadline) override;
  Result<void> put_archive(const std::string& container, const std::string& directory, const std::string& tar,
                           Deadline deadline) override;
  Result<bool> is_known_absent(const std::string& container, const std::string& path, Deadline deadline) override;
  Result<void> get_archive(const std::string& container, const std::string& path,
                           const std::function<bool(std::string_view bytes)>& receive, Deadline deadline) override;
  Result<std::unique_ptr<sandbox::ByteStream>> exec(const std::string& container, const std::vector<std::string>& argv,
                                                    Deadline deadline) override;

 private:
  [[nodiscard]] std::vector<std::string> command_line(std::vector<std::string> arguments) const;
  /// Runs a command that has to succeed. `what` is the beginning of the error message.
  Result<std::string> run(const std::string& what, std::vector<std::string> arguments, Deadline deadline,
                          const std::string& input = {}) const;

  std::string m_command;
  std::string m_host;
};

}  // namespace dockbridge::docker
