#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/control/assignment.hpp"
#include "agent/session/keeper_link.hpp"
#include "agent/session/keeper_pool.hpp"
#include "agent/session/state_directory.hpp"
#include "agent/session/warm_interpreters.hpp"
#include "error/error.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::agent {

/// Prepares the starts of code sessions: chooses their programs, and uses warm interpreters where they fit.
class DriverStarts {
 public:
  DriverStarts(const StateDirectory& state, std::string shell, KeeperPool& keepers)
      : m_state(state), m_shell(std::move(shell)), m_warm(keepers) {}

  /// Completes the command of a code session: the driver, its environment, and its limits. Installs the drivers.
  Result<void> complete(const wire::Command& command, Assignment& assignment) const;
  /// A keeper with a warm interpreter for this assignment, which gets a greeting for it; nullopt if there is none.
  std::optional<KeeperLink> take_warm(const wire::Command& command, Assignment& assignment);
  /// Keeps as many interpreters warm as the started session requests.
  void note_start(std::uint64_t request, const wire::Command& command, const Assignment& assignment);

  [[nodiscard]] WarmInterpreters& warm() { return m_warm; }
  [[nodiscard]] const WarmInterpreters& warm() const { return m_warm; }

 private:
  /// The same driver, as it is started before a process needs it.
  [[nodiscard]] ChildSpec early_driver(const wire::CodeSession& session, const Assignment& assignment) const;

  const StateDirectory& m_state;
  const std::string m_shell;
  WarmInterpreters m_warm;
};

}  // namespace dockbridge::agent
