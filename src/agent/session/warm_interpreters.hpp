#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/code/warm_policy.hpp"
#include "agent/control/child_spec.hpp"
#include "agent/session/keeper_link.hpp"
#include "agent/session/keeper_pool.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

/// Keepers that have started a Python driver before there is a process for it. All of them have the same program, that
/// of the latest Python session.
class WarmInterpreters {
 public:
  explicit WarmInterpreters(KeeperPool& keepers) : m_keepers(keepers) {}

  /// A keeper with a driver that was started with these arguments and environment; nullopt if there is none.
  std::optional<KeeperLink> take(const ChildSpec& driver);
  /// A Python session with this driver was started by `request`. From its reply on, `count` interpreters are kept.
  void keep(const ChildSpec& driver, std::size_t count, std::uint64_t request);
  /// The request for which no reply was sent when it was last checked; nullopt if there is none.
  [[nodiscard]] std::optional<std::uint64_t> awaited_request() const { return m_request; }
  void note_reply(Clock::time_point now);
  void start_if_due(Clock::time_point now);
  [[nodiscard]] std::optional<Clock::time_point> next_start() const { return m_policy.next_launch(m_warm.size()); }
  [[nodiscard]] bool empty() const { return m_warm.empty(); }
  /// Ends all of them to free memory.
  void drop_all(Clock::time_point now);

 private:
  KeeperPool& m_keepers;
  WarmPolicy m_policy;
  ChildSpec m_driver;
  std::vector<KeeperLink> m_warm;
  std::optional<std::uint64_t> m_request;
};

}  // namespace dockbridge::agent
