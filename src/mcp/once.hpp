#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "mcp/tool.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

/// The mark of a call, which is the same in every server.
OnceMark once_mark(const std::string& owner, const std::string& key, const std::string& what);

/// Makes a call that is repeated under the same key happen once: whoever comes second waits for the first's result or
/// gets it from memory. Keys belong to owners and are kept for an hour, at most so many. What has to hold beyond this
/// program's life is for tools to see to, by the mark. Any thread may call.
class Once {
 public:
  class Attempt;

  struct Entered {
    std::shared_ptr<Attempt> attempt;
    bool first = false;     ///< do it, and `finish` or `give_up`
    bool conflict = false;  ///< the key was used for something else
  };
  Entered enter(const std::string& owner, const std::string& key, const std::string& what);

 private:
  using Key = std::pair<std::string, std::string>;
  std::mutex m_mutex;  // guards everything below
  std::map<Key, std::shared_ptr<Attempt>> m_attempts;
  std::list<std::pair<Clock::time_point, Key>> m_order;
};

class Once::Attempt {
 public:
  explicit Attempt(std::string what) : m_what(std::move(what)) {}

  void finish(const ToolResult& result);
  /// It did not happen: who comes next does it.
  void give_up();
  /// None if it was given up, or the one who waits is stopped.
  std::optional<ToolResult> wait(const std::stop_token& stop);

 private:
  friend class Once;
  const std::string m_what;
  std::mutex m_mutex;  // guards everything below
  std::condition_variable_any m_changed;
  bool m_given_up = false;
  std::optional<ToolResult> m_result;
};

}  // namespace dockbridge::mcp
