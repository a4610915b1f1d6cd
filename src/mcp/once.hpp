#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "mcp/once_keys.hpp"
#include "mcp/tool.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// The mark of a call, which is the same in every server.
OnceMark once_mark(const std::string& owner, const std::string& key, const std::string& what);

struct OnceLimits {
  seconds lifetime{3600};
  std::size_t keys_per_owner = 100'000;
  /// Limit for all stored results. The owner with the most bytes loses its oldest result first.
  std::size_t result_bytes = 32UL * 1024 * 1024;
  std::size_t result_bytes_per_owner = 8UL * 1024 * 1024;
};

/// Ensures that repeated calls with the same key are made once. A repetition waits for the running call, then gets its
/// result, or its outcome if the result was dropped to save memory. Each owner has its own table, so no owner can
/// displace another's keys. A full table refuses new keys and drops none early. Owners are token names, so their number
/// is bounded. Tools whose effect outlives this program use the mark to prevent a repetition after a restart. Any
/// thread may call.
class Once {
 public:
  /// A running call. Opaque for callers.
  struct Attempt;

  struct Entered {
    enum class State {
      first,      ///< make the call, then `finish` or `give_up` the attempt
      running,    ///< wait for the attempt
      finished,   ///< `result` is set
      forgotten,  ///< only `outcome` is set; the result was dropped
      conflict,   ///< the key was used for another call
      full,       ///< the owner has too many keys
    };
    State state = State::first;
    std::shared_ptr<Attempt> attempt{};
    std::shared_ptr<const ToolResult> result{};
    OnceOutcome outcome{};
  };

  explicit Once(OnceLimits limits = {}) : m_limits(limits) {}

  Entered enter(const std::string& owner, const OnceMark& mark, Clock::time_point now);
  void finish(Attempt& attempt, const ToolResult& result, Clock::time_point now);
  /// The call was not made; the next call with this key makes it.
  void give_up(Attempt& attempt);
  /// Waits for the end of a running call. nullptr if it was given up, or the waiting call was stopped.
  static std::shared_ptr<const ToolResult> wait(Attempt& attempt, const std::stop_token& stop);

 private:
  struct Owner {
    OnceKeys keys;
    std::map<OnceKeys::Digest, std::shared_ptr<Attempt>> running{};
  };
  std::uint32_t seconds_at(Clock::time_point now) REQUIRES(m_mutex);
  Owner& owner_of(const std::string& name) REQUIRES(m_mutex);

  const OnceLimits m_limits;
  Mutex m_mutex;
  std::optional<Clock::time_point> m_epoch GUARDED_BY(m_mutex);  // one lifetime before the first call
  std::map<std::string, Owner> m_owners GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp
