#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace dockbridge::mcp {

/// Limits the memory of messages, in total and for each owner, while they are read and their calls run. Counts the text
/// of a message and the values parsed from it. The first 64 KiB of each are free, so that owners of large messages do
/// not block small ones. The number of messages is limited by the number of calls. Any thread may call.
class MessageMemory {
  struct Used;

 public:
  MessageMemory(std::size_t limit, std::size_t limit_per_owner)
      : m_used(std::make_shared<Used>(limit, limit_per_owner)) {}

  /// Memory for a message that is one long text: the text, and the value parsed from it.
  static constexpr std::size_t room_for(std::size_t message_bytes) { return 2 * message_bytes; }

  /// Counts one message until it is destroyed. After a long message it returns memory to the system. It may outlive the
  /// `MessageMemory`. One thread uses it at a time.
  class Claim {
   public:
    Claim(std::shared_ptr<Used> used, std::string owner) : m_used(std::move(used)), m_owner(std::move(owner)) {}
    ~Claim() {
      m_used->give_back(m_owner, m_counted);
      if (m_counted > k_trimmed_bytes) {
        ::malloc_trim(0);
      }
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    /// Counts more memory for values; false if a limit is exceeded.
    bool grow(std::size_t bytes) {
      m_values += bytes;
      return m_values <= k_uncounted_bytes || count(std::min(bytes, m_values - k_uncounted_bytes));
    }

   private:
    friend class MessageMemory;
    bool count(std::size_t bytes) {
      if (!m_used->take(m_owner, bytes)) {
        return false;
      }
      m_counted += bytes;
      return true;
    }

    const std::shared_ptr<Used> m_used;
    const std::string m_owner;
    std::size_t m_values = 0;
    std::size_t m_counted = 0;
  };

  /// A claim for a text of this many bytes; nullptr if a limit is exceeded.
  [[nodiscard]] std::shared_ptr<Claim> claim(const std::string& owner, std::size_t bytes) {
    auto made = std::make_shared<Claim>(m_used, owner);
    return bytes <= k_uncounted_bytes || made->count(bytes) ? made : nullptr;
  }

 private:
  static constexpr std::size_t k_uncounted_bytes = 64UL * 1024;
  static constexpr std::size_t k_trimmed_bytes = 1024UL * 1024;
  struct Used {
    Used(std::size_t the_limit, std::size_t the_limit_per_owner)
        : limit(the_limit), limit_per_owner(the_limit_per_owner) {}
    bool take(const std::string& owner, std::size_t bytes) {
      const std::lock_guard lock(mutex);
      std::size_t& own = by_owner[owner];
      if (bytes > limit - total || bytes > limit_per_owner - own) {
        return false;
      }
      total += bytes;
      own += bytes;
      return true;
    }
    void give_back(const std::string& owner, std::size_t bytes) {
      if (bytes > 0) {
        const std::lock_guard lock(mutex);
        total -= bytes;
        by_owner[owner] -= bytes;
      }
    }

    const std::size_t limit;
    const std::size_t limit_per_owner;
    std::mutex mutex;  // guards the rest
    std::size_t total = 0;
    std::map<std::string, std::size_t> by_owner;  // owners are few: the names of tokens
  };

  const std::shared_ptr<Used> m_used;
};

}  // namespace dockbridge::mcp
