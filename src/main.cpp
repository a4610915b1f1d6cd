#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "util/file.hpp"
#include "util/log.hpp"

using namespace dockbridge;

namespace {

constexpr std::size_t k_max_config_bytes = 1024 * 1024;

cli::Surroundings surroundings() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
          },
          [](const std::string& path) -> Result<std::optional<std::string>> {
            if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
              return std::nullopt;
            }
            auto content = read_file_at(AT_FDCWD, path, k_max_config_bytes);
            return content ? Result<std::optional<std::string>>(std::move(*content)) : fail(content.error());
          }};
}

/// Before any thread starts: writing to a client that is gone is an error, not a death, and the signals that end the
/// server are taken up by its main loop.
void prepare_signals(bool serving) {
  std::signal(SIGPIPE, SIG_IGN);
  if (serving) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    ::sigprocmask(SIG_BLOCK, &stops, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto invocation = cli::parse_command_line({argv + 1, argv + argc}, surroundings());
  if (!invocation) {
    fmt::print(stderr, "dockbridge: {}\n", invocation.error().sentence());
    return 2;
  }
  const cli::Options& options = invocation->options;
  const bool serving = invocation->command == cli::Command::serve;
  prepare_signals(serving);
  // On a terminal, a command's own words are enough.
  const bool quiet = !serving && options.log_level == LogLevel::info;
  Log log(STDERR_FILENO, quiet ? LogLevel::warn : options.log_level, options.log_format);
  switch (invocation->command) {
    case cli::Command::help:
      fmt::print("{}", invocation->help);
      return 0;
    case cli::Command::version:
      fmt::print("dockbridge {}\n", DOCKBRIDGE_VERSION);
      return 0;
    case cli::Command::call:
      return cli::call(options, invocation->tool, invocation->arguments, log);
    case cli::Command::doctor:
      return cli::doctor(options, log);
    case cli::Command::serve:
      return cli::serve(options, log);
  }
  return 2;
}
