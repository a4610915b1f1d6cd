#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge {

/// Limits how many units each owner, and all owners together, use at the same time. Any thread may call.
class Quota {
  struct Used;

 public:
  explicit Quota(std::size_t limit_per_owner, std::size_t limit = std::numeric_limits<std::size_t>::max())
      : m_used(std::make_shared<Used>(limit_per_owner, limit)) {}

  /// Holds units until it is destroyed. It may outlive the quota. One thread uses it at a time.
  class Claim {
   public:
    Claim(std::shared_ptr<Used> used, std::string owner) : m_used(std::move(used)), m_owner(std::move(owner)) {}
    ~Claim() { m_used->give_back(m_owner, m_units); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    /// Takes more units; false, and nothing is taken, if a limit is exceeded.
    bool grow(std::size_t units) {
      const bool taken = m_used->take(m_owner, units);
      m_units += taken ? units : 0;
      return taken;
    }
    [[nodiscard]] std::size_t units() const { return m_units; }

   private:
    const std::shared_ptr<Used> m_used;
    const std::string m_owner;
    std::size_t m_units = 0;
  };

  /// nullptr if a limit is exceeded.
  [[nodiscard]] std::shared_ptr<Claim> claim(const std::string& owner, std::size_t units = 1) {
    auto made = std::make_shared<Claim>(m_used, owner);
    return made->grow(units) ? made : nullptr;
  }

 private:
  struct Used {
    Used(std::size_t the_limit_per_owner, std::size_t the_limit)
        : limit_per_owner(the_limit_per_owner), limit(the_limit) {}
    bool take(const std::string& owner, std::size_t units) {
      const MutexLock lock(mutex);
      std::size_t& own = by_owner[owner];
      if (units > limit - total || units > limit_per_owner - own) {
        return false;
      }
      total += units;
      own += units;
      return true;
    }
    void give_back(const std::string& owner, std::size_t units) {
      if (units > 0) {
        const MutexLock lock(mutex);
        total -= units;
        by_owner[owner] -= units;
      }
    }

    const std::size_t limit_per_owner;
    const std::size_t limit;
    Mutex mutex;
    std::size_t total GUARDED_BY(mutex) = 0;
    std::map<std::string, std::size_t> by_owner GUARDED_BY(mutex);  // one entry per token name
  };

  const std::shared_ptr<Used> m_used;
};

/// Limits the rate of each owner (token bucket with a burst of one second). Any thread may call.
class Rate {
 public:
  explicit Rate(double per_second) : m_per_second(per_second) {}

  bool allows(const std::string& owner, Clock::time_point now) {
    const MutexLock lock(m_mutex);
    auto [entry, added] = m_buckets.try_emplace(owner, Bucket{m_per_second, now});
    Bucket& bucket = entry->second;
    now = std::max(now, bucket.at);  // another thread may have read the clock later and locked earlier
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
  Mutex m_mutex;
  std::map<std::string, Bucket> m_buckets GUARDED_BY(m_mutex);  // one entry per token name
};

}  // namespace dockbridge
