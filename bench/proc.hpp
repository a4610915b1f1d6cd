#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace dockbridge::bench {

/// What /proc says of a process on this host. Each throws if the process is gone, or may not be looked at.
std::uint64_t resident_bytes(pid_t pid);
std::uint64_t peak_resident_bytes(pid_t pid);
/// Memory it shares with nobody.
std::uint64_t private_bytes(pid_t pid);
std::size_t open_descriptors(pid_t pid);

/// What this machine's processors have done since it was started.
struct ProcessorTime {
  std::uint64_t all = 0;
  std::uint64_t stolen = 0;  ///< what the hypervisor gave to other machines while this one had work
};
ProcessorTime processor_time();

/// 1536 KiB as "1.50 MiB".
std::string in_mebibytes(std::uint64_t bytes);
std::string in_kibibytes(std::int64_t bytes);

}  // namespace dockbridge::bench
