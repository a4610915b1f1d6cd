#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "util/clock.hpp"

namespace dockbridge {

/// Limits how many units each owner uses at the same time. Any thread may call.
class Quota {
 public:
  explicit Quota(std::size_t limit) : m_limit(limit) {}

  /// Holds one unit until it is destroyed; nullptr if the owner is at its limit. It may outlive the quota.
  [[nodiscard]] std::shared_ptr<void> claim(const std::string& owner) {
    const std::lock_guard lock(m_used->mutex);
    std::size_t& own = m_used->by_owner[owner];
    if (own >= m_limit) {
      return nullptr;
    }
    ++own;
    return {m_used.get(), [used = m_used, owner](void*) {
              const std::lock_guard back(used->mutex);
              --used->by_owner[owner];
            }};
  }

 private:
  struct Used {
    std::mutex mutex;                             // guards the map
    std::map<std::string, std::size_t> by_owner;  // one entry per token name
  };
  const std::size_t m_limit;
  const std::shared_ptr<Used> m_used = std::make_shared<Used>();
};

/// Limits the rate of each owner (token bucket with a burst of one second). Any thread may call.
class Rate {
 public:
  explicit Rate(double per_second) : m_per_second(per_second) {}

  bool allows(const std::string& owner) {
    const std::lock_guard lock(m_mutex);
    const auto now = Clock::now();
    auto [entry, added] = m_buckets.try_emplace(owner, Bucket{m_per_second, now});
    Bucket& bucket = entry->second;
    bucket.left += std::chrono::duration<double>(now - bucket.at).count() * m_per_second;
    bucket.left = std::min(bucket.left, std::max(m_per_second, 1.0));
    bucket.at = now;
    if (bucket.left < 1) {
      return false;
    }
    bucket.left -= 1;
    return true;
  }

 private:
  struct Bucket {
    double left;
    Clock::time_point at;
  };
  const double m_per_second;
  std::mutex m_mutex;  // guards the map, which has one entry per token name
  std::map<std::string, Bucket> m_buckets;
};

}  // namespace dockbridge
