#include "agent/files/image/confinement.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>

namespace dockbridge::agent {

namespace {

#if defined(__x86_64__)
constexpr unsigned k_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned k_architecture = AUDIT_ARCH_AARCH64;
#else
#error "The seccomp filter does not know this architecture"
#endif

constexpr sock_filter load(std::size_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<unsigned>(offset)};
}

/// Skips the next `if_equal` or `otherwise` instructions.
constexpr sock_filter compare(unsigned value, unsigned char if_equal, unsigned char otherwise) {
  return {BPF_JMP | BPF_JEQ | BPF_K, if_equal, otherwise, value};
}

constexpr sock_filter decide(unsigned action) {
  return {BPF_RET | BPF_K, 0, 0, action};
}

}  // namespace

bool forbid_system_calls() {
  // System call numbers differ between architectures, for example in 32-bit code.
  std::array filter = {load(offsetof(seccomp_data, arch)), compare(k_architecture, 0, 3),
                       load(offsetof(seccomp_data, nr)),   compare(SYS_exit, 2, 0),
                       compare(SYS_exit_group, 1, 0),      decide(SECCOMP_RET_KILL_PROCESS),
                       decide(SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace dockbridge::agent
