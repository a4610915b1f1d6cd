#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "mcp/once_keys.hpp"
#include "mcp/tool.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

/// The mark of a call, which is the same in every server.
OnceMark once_mark(const std::string& owner, const std::string& key, const std::string& what);

struct OnceLimits {
  seconds lifetime{3600};
  std::size_t keys_per_owner = 100'000;
  /// Of kept results. The owner with the most loses its oldest first.
  std::size_t result_bytes = 32UL * 1024 * 1024;
  std::size_t result_bytes_per_owner = 8UL * 1024 * 1024;
};

/// Makes a call that is repeated under the same key happen once. A repetition waits for the call under way, gets its
/// result, or its outcome if the result was dropped to save memory. Each owner has a table of its own, so that no owner
/// can displace another's keys; a full table refuses new keys and forgets none early. Owners are the names of tokens,
/// so their number is bounded. Tools whose effect outlives this program use the mark to repeat nothing after a restart.
/// Any thread may call.
class Once {
 public:
  class Attempt;

  struct Entered {
    enum class State {
      first,      ///< do it, then `finish` or `give_up` the attempt
      running,    ///< wait for the attempt
      finished,   ///< here is the result
      forgotten,  ///< only the outcome is left
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
  /// It did not happen: the next call under this key does it.
  void give_up(Attempt& attempt);

 private:
  struct Owner {
    OnceKeys keys;
    std::map<OnceKeys::Digest, std::shared_ptr<Attempt>> running{};
  };
  std::uint32_t seconds_at(Clock::time_point now);
  Owner& owner_of(const std::string& name);

  const OnceLimits m_limits;
  std::mutex m_mutex;                        // guards everything below
  std::optional<Clock::time_point> m_epoch;  // a lifetime before the first call
  std::map<std::string, Owner> m_owners;
};

/// A call under way.
class Once::Attempt {
 public:
  Attempt(std::string owner, const OnceKeys::Digest& key, const OnceKeys::Digest& call)
      : m_owner(std::move(owner)), m_key(key), m_call(call) {}

  /// nullptr if it was given up, or the waiting call is stopped.
  std::shared_ptr<const ToolResult> wait(const std::stop_token& stop);

 private:
  friend class Once;
  void end(std::shared_ptr<const ToolResult> result);

  const std::string m_owner;
  const OnceKeys::Digest m_key;
  const OnceKeys::Digest m_call;
  std::mutex m_mutex;  // guards everything below
  std::condition_variable_any m_changed;
  bool m_ended = false;
  std::shared_ptr<const ToolResult> m_result;
};

}  // namespace dockbridge::mcp
