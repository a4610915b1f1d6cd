#pragma once

#include <malloc.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace dockbridge::mcp {

/// Counts the bytes of messages while they are read and their calls run, of all owners and of each, up to limits. Short
/// messages are not counted, so that those who send much hold up nobody; there are as many of them as calls at most.
/// Any thread may call.
class MessageMemory {
 public:
  MessageMemory(std::size_t limit, std::size_t limit_per_owner) : m_limit(limit), m_limit_per_owner(limit_per_owner) {}

  /// Counts a message while it lives, and gives memory back to the system at the end of a long one; none if there is no
  /// room. It may outlive this object.
  [[nodiscard]] std::shared_ptr<void> claim(const std::string& owner, std::size_t bytes) {
    if (bytes <= k_short_bytes) {
      return m_used;
    }
    const std::lock_guard lock(m_used->mutex);
    std::size_t& own = m_used->by_owner[owner];
    if (m_used->total + bytes > m_limit || own + bytes > m_limit_per_owner) {
      return nullptr;
    }
    m_used->total += bytes;
    own += bytes;
    return {m_used.get(), [used = m_used, owner, bytes](void*) {
              {
                const std::lock_guard back(used->mutex);
                used->total -= bytes;
                used->by_owner[owner] -= bytes;
              }
              if (bytes > k_trimmed_bytes) {
                ::malloc_trim(0);
              }
            }};
  }

 private:
  static constexpr std::size_t k_short_bytes = 64UL * 1024;
  static constexpr std::size_t k_trimmed_bytes = 1024UL * 1024;
  struct Used {
    std::mutex mutex;  // guards the rest
    std::size_t total = 0;
    std::map<std::string, std::size_t> by_owner;  // owners are few: the names of tokens
  };

  const std::size_t m_limit;
  const std::size_t m_limit_per_owner;
  const std::shared_ptr<Used> m_used = std::make_shared<Used>();
};

}  // namespace dockbridge::mcp
