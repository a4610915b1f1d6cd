#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "docker/docker_channel.hpp"
#include "error/error.hpp"
#include "tools/toolbox.hpp"
#include "util/log.hpp"
#include "wire/retention.hpp"

namespace dockbridge::cli {

enum class Via { engine, exec };

/// Serving over HTTP.
struct HttpOptions {
  std::string host = "127.0.0.1";
  std::string port{};  ///< empty: HTTP is off
  bool stdio_too = false;
  std::string token{};       ///< from the environment only
  std::string token_file{};  ///< empty: the default path
  bool no_token = false;
  std::vector<std::string> hosts{};
  std::vector<std::string> origins{};
  std::string tls_certificate{};
  std::string tls_key{};
  std::size_t max_sessions = 100;
  std::chrono::seconds session_idle{3600};
  double rate = 10'000;
  std::size_t max_message_bytes = 16ULL * 1024 * 1024;
};

/// Values of all flags, environment variables and keys of the config file.
struct Options {
  docker::ContainerPolicy container;
  Via via = Via::engine;
  std::string docker_host;
  std::string docker_command = "docker";
  tools::Settings tools;
  bool has_session_idle_limit = false;                   ///< it was given
  std::vector<std::string> host_directories;             ///< `resolve_host_paths` opens them for the tools
  std::size_t max_message_bytes = 160ULL * 1024 * 1024;  ///< on stdio: a file of 100 MiB, in base64
  std::string file_root;                                 ///< in the container; empty: no limit
  wire::Retention retention;
  HttpOptions http;
  std::string config_file;  ///< the config file that was read; empty if none
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
  mcp::Representation representation = mcp::Representation::text;
};

enum class Command { serve, call, doctor, help, version };

/// Arguments of `dockbridge call`.
struct CallOrder {
  std::string tool;
  std::string arguments;  ///< JSON
  bool raw = false;       ///< do not escape control characters on a terminal
};

struct Invocation {
  Command command = Command::serve;
  Options options;
  CallOrder call;
  std::string help;  ///< text of --help; empty for other commands
};

/// Sources of options. Tests pass their own.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> environment;
  /// The text of a file; nullopt if it does not exist.
  std::function<Result<std::optional<std::string>>(const std::string& path)> read_file;
};

/// Flags take precedence over the environment, which takes precedence over the config file. An error names the rejected
/// value, its source and the accepted values.
Result<Invocation> parse_command_line(const std::vector<std::string>& arguments, const Surroundings& surroundings);

}  // namespace dockbridge::cli
