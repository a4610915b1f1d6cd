#include "agent/keeper/usage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

/// Unit in which the kernel counts blocks.
constexpr std::uint64_t k_counted_block_bytes = 512;

std::uint64_t milliseconds_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_usec) / 1000;
}

}  // namespace

std::uint64_t number_after(const std::string& path, std::string_view word) {
  constexpr std::size_t k_max_file_bytes = 64 * 1024;
  // Not every system has every file. Creating an error that is not used would cost each keeper memory.
  if (::access(path.c_str(), R_OK) != 0) {
    return 0;
  }
  const std::string text = "\n" + read_file_at(AT_FDCWD, path, k_max_file_bytes).value_or("");
  const std::size_t at = text.find("\n" + std::string(word));
  if (at == std::string::npos) {
    return 0;
  }
  const std::size_t begin = text.find_first_not_of(" \t", at + 1 + word.size());
  std::uint64_t number = 0;
  std::from_chars(text.data() + std::min(begin, text.size()), text.data() + text.size(), number);
  return number;
}

wire::Usage usage_of(const rusage& reaped) {
  return {milliseconds_of(reaped.ru_utime) + milliseconds_of(reaped.ru_stime),
          static_cast<std::uint64_t>(reaped.ru_maxrss),
          static_cast<std::uint64_t>(reaped.ru_inblock) * k_counted_block_bytes,
          static_cast<std::uint64_t>(reaped.ru_oublock) * k_counted_block_bytes};
}

wire::Usage usage_of(const std::vector<ProcessEntry>& processes) {
  static const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  wire::Usage usage;
  for (const ProcessEntry& process : processes) {
    const std::string folder = fmt::format("/proc/{}", process.pid);
    usage = sum_of(usage, {process.cpu_ticks * 1000 / ticks_per_second, number_after(folder + "/status", "VmHWM:"),
                           number_after(folder + "/io", "read_bytes:"), number_after(folder + "/io", "write_bytes:")});
  }
  return usage;
}

wire::Usage sum_of(const wire::Usage& a, const wire::Usage& b) {
  return {a.cpu_ms + b.cpu_ms, std::max(a.peak_memory_kib, b.peak_memory_kib), a.read_bytes + b.read_bytes,
          a.written_bytes + b.written_bytes};
}

}  // namespace dockbridge::agent
