#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/clock.hpp"

namespace dockbridge::docker {

/// Specification of a container that dockbridge creates, with the hardening of docker-compose.yml.
struct ContainerSpec {
  std::string name;
  std::string image;
  std::string workdir;
  std::string workspace;  ///< host directory mounted at workdir; empty: none
  std::vector<std::string> capabilities = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"};
  std::int64_t pids_limit = 4096;
  std::int64_t memory_bytes = 4LL * 1024 * 1024 * 1024;
};

/// The requests that dockbridge makes of a container engine, independent of the interface. Any thread may call.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Name of the engine and its interface for messages, such as "engine at unix:///var/run/docker.sock".
  [[nodiscard]] virtual std::string description() const = 0;
  virtual Result<std::string> version(Deadline deadline) = 0;
  /// The engine's own description of a container; error `no_such_container`.
  virtual Result<nlohmann::json> inspect(const std::string& container, Deadline deadline) = 0;
  virtual Result<bool> has_image(const std::string& image, Deadline deadline) = 0;
  virtual Result<void> create(const ContainerSpec& spec, Deadline deadline) = 0;
  virtual Result<void> start(const std::string& container, Deadline deadline) = 0;
  /// Unpacks a tar archive below `directory`, which exists in the container.
  virtual Result<void> put_archive(const std::string& container, const std::string& directory, const std::string& tar,
                                   Deadline deadline) = 0;
  /// Whether nothing exists at `path` in the container. False if a check would cost as much as reading an archive.
  virtual Result<bool> is_known_absent(const std::string& container, const std::string& path, Deadline deadline) = 0;
  /// Streams a tar archive of `path` and everything below it to `receive`, until `receive` returns false. The first
  /// member is `path` itself. Error `no_such_file`.
  virtual Result<void> get_archive(const std::string& container, const std::string& path,
                                   const std::function<bool(std::string_view bytes)>& receive, Deadline deadline) = 0;
  /// Runs a program with its standard streams connected, in the directory "/".
  virtual Result<std::unique_ptr<sandbox::ByteStream>> exec(const std::string& container,
                                                            const std::vector<std::string>& argv,
                                                            Deadline deadline) = 0;
};

}  // namespace dockbridge::docker
