#include "agent/code/memory_use.hpp"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_statistics = 64 * 1024;
/// A limit of cgroup v1 from here on means that there is none.
constexpr std::uint64_t k_unlimited = std::uint64_t{1} << 60U;

std::string read_statistics(const std::string& path) {
  return read_file_at(AT_FDCWD, path, k_max_statistics).value_or("");
}

std::optional<std::uint64_t> number_at_start(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// The number after `name` at the start of a line.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(name)) {
      return number_at_start(line.substr(name.size()));
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

/// Cached files that were not used lately do not count, because the kernel frees them first.
std::optional<MemoryUse> cgroup_use(const std::string& limit_file, const std::string& usage_file,
                                    const std::string& statistics_file, std::string_view inactive_name) {
  const auto limit = number_at_start(read_statistics(limit_file));
  const auto usage =
      limit && *limit > 0 && *limit < k_unlimited ? number_at_start(read_statistics(usage_file)) : std::nullopt;
  if (!usage) {
    return std::nullopt;
  }
  const std::uint64_t inactive = number_of(read_statistics(statistics_file), inactive_name).value_or(0);
  return MemoryUse{*usage - std::min(*usage, inactive), *limit};
}

}  // namespace

std::optional<MemoryUse> read_memory_use(const std::string& root) {
  const std::string v2 = root + "sys/fs/cgroup/";
  if (const auto use = cgroup_use(v2 + "memory.max", v2 + "memory.current", v2 + "memory.stat", "inactive_file ")) {
    return use;
  }
  const std::string v1 = root + "sys/fs/cgroup/memory/";
  if (const auto use = cgroup_use(v1 + "memory.limit_in_bytes", v1 + "memory.usage_in_bytes", v1 + "memory.stat",
                                  "total_inactive_file ")) {
    return use;
  }
  const std::string machine = read_statistics(root + "proc/meminfo");
  const auto total = number_of(machine, "MemTotal:");
  const auto available = number_of(machine, "MemAvailable:");
  return total && *total > 0 && available ? std::optional(MemoryUse{*total - std::min(*total, *available), *total})
                                          : std::nullopt;
}

}  // namespace dockbridge::agent
