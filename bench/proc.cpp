#include "proc.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

namespace dockbridge::bench {

namespace {

constexpr std::uint64_t k_kibibyte = 1024;

std::string proc_path(pid_t pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

/// The sum of the fields, which are in lines of the form "Name:   123 kB".
std::uint64_t sum_of_fields(const std::string& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  std::uint64_t sum = 0;
  std::size_t found = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    for (const std::string_view name : names) {
      if (colon != std::string::npos && std::string_view(line).substr(0, colon) == name) {
        sum += std::stoull(line.substr(colon + 1)) * k_kibibyte;
        ++found;
      }
    }
  }
  if (found != names.size()) {
    throw std::runtime_error("cannot read " + path + " (are you root?)");
  }
  return sum;
}

}  // namespace

std::uint64_t resident_bytes(pid_t pid) {
  return sum_of_fields(proc_path(pid, "status"), {"VmRSS"});
}

std::uint64_t peak_resident_bytes(pid_t pid) {
  return sum_of_fields(proc_path(pid, "status"), {"VmHWM"});
}

std::uint64_t private_bytes(pid_t pid) {
  return sum_of_fields(proc_path(pid, "smaps_rollup"), {"Private_Clean", "Private_Dirty"});
}

std::size_t open_descriptors(pid_t pid) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(proc_path(pid, "fd"))) {
    ++count;
  }
  return count;
}

ProcessorTime processor_time() {
  // user nice system idle iowait irq softirq steal
  constexpr int k_columns = 8;
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  ProcessorTime time;
  for (int column = 0; column < k_columns && file >> time.stolen; ++column) {
    time.all += time.stolen;
  }
  return time;
}

std::string in_mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string in_kibibytes(std::int64_t bytes) {
  return fmt::format("{} KiB", bytes / 1024);
}

}  // namespace dockbridge::bench
