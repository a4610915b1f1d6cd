#include "agent/moment.hpp"

#include <fcntl.h>

#include <algorithm>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_boot_bytes = 8;
constexpr std::size_t k_max_boot_id_bytes = 256;

}  // namespace

Moment now() {
  static const std::string boot = read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", k_max_boot_id_bytes)
                                      .value_or("")
                                      .substr(0, k_boot_bytes);
  return {unix_milliseconds_now(), uptime_milliseconds_now(), boot};
}

milliseconds age(const Moment& then, const Moment& now) {
  const bool same_boot = !then.boot.empty() && then.boot == now.boot;
  return milliseconds(same_boot ? std::max<std::int64_t>(0, now.uptime_ms - then.uptime_ms)
                                : now.unix_ms - then.unix_ms);
}

}  // namespace dockbridge::agent
