#pragma once

#include <string>
#include <vector>

#include "agent/session/output_grep.hpp"
#include "agent/session/replies.hpp"
#include "agent/session/state_directory.hpp"

namespace dockbridge::agent {

/// Searches in stored output that are in progress. Each call of `advance` does a bounded part of each.
class GrepList {
 public:
  GrepList(const StateDirectory& state, Replies& replies) : m_state(state), m_replies(replies) {}

  Result<void> add(std::uint64_t request, const wire::GrepRequest& message);
  void cancel(std::uint64_t request);
  void advance();
  [[nodiscard]] bool empty() const { return m_searches.empty(); }

 private:
  struct Search {
    std::uint64_t request;
    std::string process;
    OutputGrep grep;
  };

  const StateDirectory& m_state;
  Replies& m_replies;
  std::vector<Search> m_searches;
};

}  // namespace dockbridge::agent
