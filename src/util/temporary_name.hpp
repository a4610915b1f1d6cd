#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace dockbridge {

// Temporary files of dockbridge, in directories that belong to the user and may be shared by several containers. A
// process holds a lock on each of its temporary files for as long as that has its temporary name. So a file whose
// process was killed can be told from one that is in use, by whichever container and by the host.

/// ".dockbridge-", 16 random hexadecimal digits, ".tmp".
std::string new_temporary_name();
bool is_temporary_name(std::string_view name);

/// Marks an open temporary file as in use until it is closed or `unlock_temporary` is called.
void lock_temporary(int fd);
/// To be called right before the file gets its final name: the lock must not be seen there.
void unlock_temporary(int fd);

/// A temporary file without a lock is an orphan after this time without a write. Covers the moment before the lock is
/// taken, and versions that took none.
inline constexpr std::chrono::seconds k_orphan_age{600};

/// Removes the orphans in a directory: regular files of this user, with a temporary name, one hard link, and no lock.
/// `directory_fd` may be of the kind O_PATH. Looks at no more than 100,000 entries.
void remove_orphans(int directory_fd, std::chrono::seconds age = k_orphan_age);

}  // namespace dockbridge
