#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/session/keeper_link.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// Idle keepers. Starting a keeper costs as much as a short command, so a few are kept.
class KeeperPool {
 public:
  explicit KeeperPool(std::string state_path) : m_state_path(std::move(state_path)) {}
  /// Starts a keeper before it is needed. A failure is not reported, because `hand_over` retries.
  void prepare();
  /// Sends the assignment to an idle keeper, or to a new one.
  Result<KeeperLink> hand_over(const Assignment& assignment);
  /// Keeps a keeper whose process is gone, or drops it if there are enough.
  void give_back(KeeperLink link);

 private:
  std::string m_state_path;
  std::vector<KeeperLink> m_idle;
};

}  // namespace dockbridge::agent
