#include "agent/keeper/starvation.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

/// The second number of "RAN WAITED SLICES"; nullopt if the thread has ended or the kernel does not count.
std::optional<std::chrono::nanoseconds> wait_in(const std::string& schedstat) {
  const Fd file(::open(schedstat.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  const std::string_view numbers(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const std::size_t space = numbers.find(' ');
  std::int64_t number = 0;
  if (space == std::string_view::npos ||
      std::from_chars(numbers.data() + space + 1, numbers.data() + numbers.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return std::chrono::nanoseconds(number);
}

}  // namespace

CpuWaits cpu_waits(const std::vector<ProcessEntry>& processes) {
  CpuWaits waits;
  for (const ProcessEntry& process : processes) {
    for (const pid_t thread : threads_of(process.pid)) {
      if (const auto time = wait_in(fmt::format("/proc/{}/task/{}/schedstat", process.pid, thread))) {
        waits[thread] = *time;
      }
    }
  }
  return waits;
}

void Starvation::reset() {
  m_began.reset();
  m_waits.clear();
  m_starved = {};
}

void Starvation::note(Clock::time_point now, CpuWaits waits) {
  if (m_began) {
    std::chrono::nanoseconds longest{0};
    for (const auto& [thread, time] : waits) {
      const auto before = m_waits.find(thread);
      const bool is_new = before == m_waits.end() || before->second > time;  // or a reused number
      longest = std::max(longest, is_new ? time : time - before->second);
    }
    m_starved += longest;
  } else {
    m_began = now;
  }
  m_last = now;
  m_waits = std::move(waits);
}

milliseconds Starvation::total() const {
  // The kernel reports a wait when it is over. A wait that began before the first note counts only from there on.
  return m_began ? std::chrono::duration_cast<milliseconds>(std::min<Clock::duration>(m_starved, m_last - *m_began))
                 : milliseconds(0);
}

}  // namespace dockbridge::agent
