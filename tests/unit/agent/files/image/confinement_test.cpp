#include "agent/files/image/confinement.hpp"

#include <doctest/doctest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>

#include "agent/files/image/image_scale.hpp"
#include "support/failing_call.hpp"
#include "support/png.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers make system calls of their own

namespace {

/// An existing seccomp filter, as in a Docker container.
constexpr FailingCall k_no_reboot{SYS_reboot, EPERM};
/// A filter that forbids installing another one.
constexpr FailingCall k_no_filter{SYS_prctl, EPERM, 0, PR_SET_SECCOMP, PR_SET_SECCOMP};

/// Signal that ends a process which confines itself and then makes a system call; 0 if it continues.
int signal_after(const std::function<bool()>& prepare) {
  const pid_t process = ::fork();
  if (process == 0) {
    if (prepare() && agent::forbid_system_calls()) {
      ::syscall(SYS_getpid);
    }
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Result<agent::ScaledImage> scaled() {
  const std::string file = plain_png(40, 30);
  return agent::scale_image(file, *agent::image_header_of(file), 10, 100'000);
}

}  // namespace

TEST_CASE("confinement: a confined process may only exit, with another filter or without") {
  CHECK(signal_after([] { return true; }) == SIGSYS);
  CHECK(signal_after([] { return begin_to_fail(k_no_reboot); }) == SIGSYS);
  CHECK(while_failing(k_no_reboot, [] { return agent::forbid_system_calls(); }));
}

TEST_CASE("image scale: works under another filter, never without confinement") {
  CHECK(while_failing(k_no_reboot, [] { return scaled().has_value(); }));
  CHECK(while_failing(k_no_filter, [] {
    const auto refused = scaled();
    return !refused && refused.error().code == ErrorCode::cannot_start;
  }));
}

#endif
