#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/session/keeper_link.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// Keepers that have no process just now. Starting one costs as much as a short command does, so a few are kept.
class KeeperPool {
 public:
  explicit KeeperPool(std::string state_path) : m_state_path(std::move(state_path)) {}
  /// Has one ready before it is needed. What goes wrong here goes wrong again in `hand_over`, and is told there.
  void prepare();
  /// Gives the assignment to an idle keeper, or to a new one.
  Result<KeeperLink> hand_over(const Assignment& assignment);
  /// Takes back a keeper whose process is gone.
  void give_back(KeeperLink link);

 private:
  std::string m_state_path;
  std::vector<KeeperLink> m_idle;
};

}  // namespace dockbridge::agent
