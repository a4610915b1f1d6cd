#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "util/mutex.hpp"

namespace dockbridge::sandbox {

/// The revision that each of the most recent files had when an owner last read or changed it. Used to name the revision
/// before a change whose reply was lost. It grants no permission: the agent has its own history for that. Any thread
/// may call.
class SeenRevisions {
 public:
  void remember(const std::string& owner, const std::string& path, const std::string& revision) {
    const MutexLock lock(m_mutex);
    const auto [entry, is_new] = m_revisions.insert_or_assign({owner, path}, revision);
    if (is_new) {
      m_order.push_back(entry->first);
    }
    if (m_order.size() > k_max_files) {
      m_revisions.erase(m_order.front());
      m_order.pop_front();
    }
  }
  /// Empty if the revision is not known.
  [[nodiscard]] std::string find(const std::string& owner, const std::string& path) const {
    const MutexLock lock(m_mutex);
    const auto entry = m_revisions.find({owner, path});
    return entry == m_revisions.end() ? "" : entry->second;
  }

 private:
  static constexpr std::size_t k_max_files = 1000;
  using Key = std::pair<std::string, std::string>;

  mutable Mutex m_mutex;
  std::map<Key, std::string> m_revisions GUARDED_BY(m_mutex);
  std::deque<Key> m_order GUARDED_BY(m_mutex);  ///< oldest entry first
};

}  // namespace dockbridge::sandbox
