#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace dockbridge::bench {

/// Facts in /proc about a process on this host. Each throws if the process has ended or cannot be examined.
std::uint64_t resident_bytes(pid_t pid);
std::uint64_t peak_resident_bytes(pid_t pid);
/// Private memory.
std::uint64_t private_bytes(pid_t pid);
std::size_t open_descriptors(pid_t pid);

/// Time of this machine's processors since its start.
struct ProcessorTime {
  std::uint64_t all = 0;
  std::uint64_t stolen = 0;  ///< time that the hypervisor gave to other machines while this one had work
};
ProcessorTime processor_time();

/// 1536 KiB as "1.50 MiB".
std::string in_mebibytes(std::uint64_t bytes);
std::string in_kibibytes(std::int64_t bytes);

}  // namespace dockbridge::bench
