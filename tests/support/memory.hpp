#pragma once

#include <doctest/doctest.h>
#include <sys/types.h>

#include <fstream>
#include <string>

namespace dockbridge::test {

/// A field of /proc/PID/status in bytes, such as "VmRSS".
inline std::size_t memory_of(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) {
      return std::stoul(line.substr(field.size() + 1)) * 1024;
    }
  }
  FAIL("no " << field << " of process " << pid);
  return 0;
}

/// Peak resident memory of the process.
inline std::size_t peak_memory(pid_t pid) {
  return memory_of(pid, "VmHWM");
}

}  // namespace dockbridge::test
