#include "agent/keeper/out_of_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "agent/keeper/usage.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

std::uint64_t out_of_memory_kills() {
  const std::uint64_t kills = number_after("/sys/fs/cgroup/memory.events", "oom_kill ");
  return kills > 0 ? kills : number_after("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill ");
}

std::string own_oom_score() {
  const Fd file(::open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "0";
}

void set_oom_score(std::string_view score) {
  const Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  (void)write_all(file.get(), score);
}

}  // namespace dockbridge::agent
