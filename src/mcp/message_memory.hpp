#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "util/quota.hpp"

namespace dockbridge::mcp {

/// Limits the memory of messages, in total and for each owner, while they are read and their calls run. Counts the text
/// of a message and the values parsed from it. The first 64 KiB of each are free, so that owners of large messages do
/// not block small ones. The number of messages is limited by the number of calls that run or wait. Any thread may
/// call.
class MessageMemory {
 public:
  MessageMemory(std::size_t limit, std::size_t limit_per_owner) : m_bytes(limit_per_owner, limit) {}

  /// Memory for a message that is one long text: the text, and the value parsed from it.
  static constexpr std::size_t room_for(std::size_t message_bytes) { return 2 * message_bytes; }

  /// Counts one message until it is destroyed. After a long message it returns memory to the system. It may outlive the
  /// `MessageMemory`. One thread uses it at a time.
  class Claim {
   public:
    Claim(std::shared_ptr<Quota::Claim> counted, std::size_t text) : m_bytes(std::move(counted)), m_text(text) {}
    ~Claim() {
      if (m_bytes->units() > k_trimmed_bytes) {
        ::malloc_trim(0);
      }
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    /// Counts more memory for values; false if a limit is exceeded.
    bool grow(std::size_t bytes) {
      m_values += bytes;
      return m_values <= k_uncounted_bytes || m_bytes->grow(std::min(bytes, m_values - k_uncounted_bytes));
    }

    /// All memory of the message, also what is free.
    [[nodiscard]] std::size_t bytes() const { return m_text + m_values; }

   private:
    const std::shared_ptr<Quota::Claim> m_bytes;
    const std::size_t m_text;
    std::size_t m_values = 0;
  };

  /// Claims memory for a message of this size. Returns nullptr if a limit is exceeded.
  [[nodiscard]] std::shared_ptr<Claim> claim(const std::string& owner, std::size_t bytes) {
    auto counted = m_bytes.claim(owner, bytes <= k_uncounted_bytes ? 0 : bytes);
    return counted ? std::make_shared<Claim>(std::move(counted), bytes) : nullptr;
  }

 private:
  static constexpr std::size_t k_uncounted_bytes = 64UL * 1024;
  static constexpr std::size_t k_trimmed_bytes = 1024UL * 1024;

  Quota m_bytes;
};

}  // namespace dockbridge::mcp
