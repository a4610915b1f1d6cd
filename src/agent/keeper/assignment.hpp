#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/control/packets.hpp"
#include "agent/keeper/child.hpp"
#include "agent/spool.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::agent {

/// What a keeper is given to look after: one command.
struct Assignment {
  std::string process;             ///< its id
  ChildSpec child;                 ///< without its three descriptors, which the keeper makes
  milliseconds max_runtime{0};     ///< 0: no limit
  std::uint64_t output_limit = 0;  ///< bytes of both streams after which the command is ended; 0: no limit
  SpoolCaps caps;
  std::optional<wire::TerminalSize> terminal;  ///< none: pipes
  bool watch_input = false;                    ///< as if the order had come on the first link
  Fd journal;                                  ///< where to append what becomes known
  Fd stdin_file;                               ///< what the command reads as its input; none: a pipe, for send_input
};

// Between a session and a keeper that it started itself, both of one build: the form has no version.

/// Error keeper_gone if the keeper has ended.
Result<void> send_assignment(int socket, const Assignment& assignment);
/// Does not wait. What is meant for a process that has ended is dropped, and counts as nothing.
Received receive_assignment(int socket, Result<Assignment>& assignment);

}  // namespace dockbridge::agent
