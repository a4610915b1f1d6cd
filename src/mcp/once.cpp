#include "mcp/once.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <numeric>

#include "util/sha256.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_digest_bytes = 16;

/// The first half of SHA-256.
std::string digest(const std::string& text) {
  return sha256_hex(text).substr(0, 2 * k_digest_bytes);
}

OnceKeys::Digest from_hex(const std::string& text) {
  OnceKeys::Digest bytes{};
  for (std::size_t i = 0; i < bytes.size() && 2 * i + 2 <= text.size(); ++i) {
    unsigned int byte = 0;
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, byte, 16);
    bytes[i] = static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace

struct Once::Attempt {
  Attempt(std::string the_owner, const OnceKeys::Digest& the_key, const OnceKeys::Digest& the_call)
      : owner(std::move(the_owner)), key(the_key), call(the_call) {}

  void end(std::shared_ptr<const ToolResult> the_result) {
    const MutexLock lock(mutex);
    ended = true;
    result = std::move(the_result);
    changed.notify_all();
  }

  const std::string owner;
  const OnceKeys::Digest key;
  const OnceKeys::Digest call;
  Mutex mutex;
  std::condition_variable_any changed;
  bool ended GUARDED_BY(mutex) = false;
  std::shared_ptr<const ToolResult> result GUARDED_BY(mutex);
};

OnceMark once_mark(const std::string& owner, const std::string& key, const std::string& what) {
  // The length separates owner and key, whatever characters they have.
  return {digest(std::to_string(owner.size()) + ":" + owner + key), digest(what)};
}

/// Seconds since `m_epoch`. A 32-bit number takes half the space of a time point.
std::uint32_t Once::seconds_at(Clock::time_point now) {
  m_epoch = m_epoch.value_or(now - m_limits.lifetime);
  return static_cast<std::uint32_t>(std::chrono::duration_cast<seconds>(std::max(now, *m_epoch) - *m_epoch).count());
}

Once::Owner& Once::owner_of(const std::string& name) {
  return m_owners.try_emplace(name, Owner{OnceKeys(m_limits.result_bytes_per_owner)}).first->second;
}

Once::Entered Once::enter(const std::string& owner, const OnceMark& mark, Clock::time_point now) {
  using State = Entered::State;
  const OnceKeys::Digest key = from_hex(mark.key);
  const OnceKeys::Digest call = from_hex(mark.call);
  const MutexLock lock(m_mutex);
  Owner& own = owner_of(owner);
  const std::uint32_t now_s = seconds_at(now);
  // Another thread may have set the epoch by a later clock reading.
  const auto lifetime_s = static_cast<std::uint32_t>(m_limits.lifetime.count());
  own.keys.expire(std::max(now_s, lifetime_s) - lifetime_s);
  if (const auto running = own.running.find(key); running != own.running.end()) {
    return {running->second->call == call ? State::running : State::conflict, running->second};
  }
  if (const OnceKeys::Kept* kept = own.keys.find(key)) {
    if (kept->call != call) {
      return {State::conflict};
    }
    auto result = own.keys.result(key);
    const State state = result ? State::finished : State::forgotten;
    return {state, nullptr, std::move(result), kept->outcome};
  }
  if (own.keys.size() + own.running.size() >= m_limits.keys_per_owner) {
    return {State::full};
  }
  auto attempt = std::make_shared<Attempt>(owner, key, call);
  own.running.emplace(key, attempt);
  return {State::first, std::move(attempt)};
}

void Once::finish(Attempt& attempt, const ToolResult& result, Clock::time_point now) {
  ToolResult stored = result;
  stored.on_delivered = nullptr;
  stored.notices.clear();
  const auto kept = std::make_shared<const ToolResult>(std::move(stored));
  {
    const MutexLock lock(m_mutex);
    Owner& own = owner_of(attempt.owner);
    own.keys.put(attempt.key, {attempt.call, seconds_at(now), OnceOutcome(*kept)}, kept);
    const auto used = [&]() REQUIRES(m_mutex) {
      return std::accumulate(m_owners.begin(), m_owners.end(), std::size_t{0},
                             [](std::size_t sum, const auto& entry) { return sum + entry.second.keys.result_bytes(); });
    };
    while (used() > m_limits.result_bytes) {
      const auto most = std::max_element(m_owners.begin(), m_owners.end(), [](const auto& one, const auto& other) {
        return one.second.keys.result_bytes() < other.second.keys.result_bytes();
      });
      most->second.keys.drop_oldest_result();
    }
    own.running.erase(attempt.key);
  }
  attempt.end(kept);
}

void Once::give_up(Attempt& attempt) {
  {
    const MutexLock lock(m_mutex);
    owner_of(attempt.owner).running.erase(attempt.key);
  }
  attempt.end(nullptr);
}

std::shared_ptr<const ToolResult> Once::wait(Attempt& attempt, const std::stop_token& stop) {
  MutexLock lock(attempt.mutex);
  attempt.changed.wait(lock, stop, [&]() REQUIRES(attempt.mutex) { return attempt.ended; });
  return attempt.result;
}

}  // namespace dockbridge::mcp
