#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.hpp"
#include "cli/host_paths.hpp"
#include "cli/options.hpp"
#include "util/log.hpp"
#include "util/trusted_file.hpp"

using namespace dockbridge;

namespace {

cli::Surroundings surroundings() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
          },
          [](const std::string& path) -> Result<std::optional<std::string>> {
            // Links are allowed, because config files are often links into a repository. Others must not be able to
            // write the file, because it decides which commands run.
            return read_trusted_file(
                path,
                {.what = "config file", .code = ErrorCode::bad_config, .may_be_link = true, .forbidden_mode = S_IWOTH});
          }};
}

/// Called before any thread starts. Makes a write to a closed stream an error instead of a signal, and lets the main
/// loop receive the signals that end the server.
void prepare_signals(bool serving) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit fails one call instead of the server
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
  auto invocation = cli::parse_command_line({argv + 1, argv + argc}, surroundings());
  if (!invocation) {
    fmt::print(stderr, "dockbridge: {}\n", invocation.error().sentence());
    return 2;
  }
  const bool is_information = invocation->command == cli::Command::help || invocation->command == cli::Command::version;
  if (const auto resolved = is_information ? Result<void>() : cli::resolve_host_paths(invocation->options); !resolved) {
    fmt::print(stderr, "dockbridge: {}\n", resolved.error().sentence());
    return 2;
  }
  const cli::Options& options = invocation->options;
  const bool serving = invocation->command == cli::Command::serve;
  prepare_signals(serving);
  // On a terminal, the output of a command is enough.
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
      return cli::call(options, invocation->call, log);
    case cli::Command::doctor:
      return cli::doctor(options, log);
    case cli::Command::serve:
      return cli::serve(options, log);
  }
  return 2;
}
