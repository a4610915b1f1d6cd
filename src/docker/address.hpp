#pragma once

#include <functional>
#include <optional>
#include <string>

#include "error/error.hpp"

namespace dockbridge::docker {

/// Address of an engine.
struct Address {
  enum class Kind { unix_socket, tcp };
  Kind kind = Kind::unix_socket;
  std::string socket_path;  ///< unix_socket
  std::string host_port;    ///< tcp
  std::string url;          ///< for messages
  std::string source;       ///< origin: "--docker-host", "DOCKER_HOST", "docker context 'x'", "found"
};

/// Input of the search. It is passed in so that the search can be tested.
struct AddressSources {
  std::string option;  ///< --docker-host; empty if absent
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::string home;
};

Result<Address> parse_address(const std::string& url, const std::string& source);

/// --docker-host, else DOCKER_HOST, else the active docker context, else the first socket that exists in the usual
/// places of Docker, rootless Docker, Docker Desktop, Colima and Podman. A TCP address is refused if variables or the
/// context ask for TLS.
Result<Address> find_engine(const AddressSources& sources);

}  // namespace dockbridge::docker
