#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace dockbridge {

// Temporary files of dockbridge, in directories that belong to the user and may be shared by several containers. A
// process locks each of its temporary files for as long as the file has its temporary name. So other containers and the
// host can distinguish a file that is in use from one whose process was killed.

/// Format: ".dockbridge-", 16 random hexadecimal digits, ".tmp".
std::string new_temporary_name();
bool is_temporary_name(std::string_view name);

/// Marks an open temporary file as in use until it is closed or `unlock_temporary` is called.
void lock_temporary(int fd);
/// Call right before the file gets its final name, where the lock must not be visible.
void unlock_temporary(int fd);

/// A temporary file without a lock is an orphan when it was not written to for this time. The time covers the moment
/// before the lock is taken, and versions that took no lock.
inline constexpr std::chrono::seconds k_orphan_age{600};

/// Removes the orphans in a directory: regular files of this user, with a temporary name, one hard link, and no lock.
/// `directory_fd` may be an O_PATH descriptor. Checks at most 100,000 entries.
void remove_orphans(int directory_fd, std::chrono::seconds age = k_orphan_age);

}  // namespace dockbridge
