#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "agent/files/service/service.hpp"
#include "agent/keeper/service.hpp"
#include "agent/launch.hpp"
#include "agent/screen/service.hpp"
#include "agent/session/session.hpp"
#include "agent/session/state_directory.hpp"
#include "util/file.hpp"
#include "wire/frame.hpp"
#include "wire/session_messages.hpp"

using namespace dockbridge;

namespace {

/// session [AGE COUNT BYTES]
wire::Retention retention_from(int argc, char** argv) {
  wire::Retention retention;
  if (argc > 4) {
    retention.age = std::chrono::seconds(std::atoll(argv[2]));
    retention.count = static_cast<std::uint64_t>(std::atoll(argv[3]));
    retention.bytes = static_cast<std::uint64_t>(std::atoll(argv[4]));
  }
  return retention;
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__
/// Read by the sanitizer. The container tests look for its reports. Finding leaks would need ptrace.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "detect_leaks=0:log_path=/tmp/dockbridge-asan";
}
#endif

int main(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "--version") {
    fmt::print("dockbridge-agent {}\n", DOCKBRIDGE_VERSION);
    return 0;
  }
  if (role == agent::k_keeper_role && argc > 2) {
    return agent::serve_as_keeper(Fd(STDIN_FILENO), argv[2]);
  }
  if (role == agent::k_files_role && argc > 2) {
    return agent::serve_files(Fd(STDIN_FILENO), argv[2]);
  }
  if (role == agent::k_screen_role && argc > 5) {
    return agent::serve_as_screen(
        argv[2], {static_cast<std::uint16_t>(std::atoi(argv[3])), static_cast<std::uint16_t>(std::atoi(argv[4]))},
        std::strtoull(argv[5], nullptr, 10));
  }
  if (role != "session") {
    fmt::print(stderr,
               "dockbridge-agent {}: dockbridge starts this program in a container; it takes 'session' or "
               "'--version'\n",
               DOCKBRIDGE_VERSION);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_IGN);  // a keeper that is this process's child leaves no zombie
  auto state = agent::StateDirectory::open();
  if (!state) {
    (void)write_all(1, std::string(wire::k_magic) + wire::encode(wire::fatal_greeting_of(state.error())));
    return 1;
  }
  return agent::Session(std::move(*state), retention_from(argc, argv)).run();
}
