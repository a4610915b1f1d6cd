#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/control/child_spec.hpp"
#include "agent/control/packets.hpp"
#include "agent/spool.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::agent {

/// The command that a session sends to a keeper. Without a process, the keeper starts the command and waits for the
/// next assignment, which then uses that running command, called a warm child. If the warm child has ended, the keeper
/// starts the command of the next assignment as usual.
struct Assignment {
  std::string process;             ///< id
  ChildSpec child;                 ///< without its three descriptors, which the keeper creates
  milliseconds max_runtime{0};     ///< 0: no limit
  std::uint64_t output_limit = 0;  ///< bytes of both streams after which the command is ended; 0: no limit
  SpoolCaps caps;
  std::optional<wire::TerminalSize> terminal;  ///< nullopt: pipes
  bool has_side_channel = false;
  milliseconds idle_limit{0};  ///< time after which a read of the side channel by the command fails; 0: no limit
  std::string greeting;        ///< first bytes on the side channel of a warm child
  bool watch_input = false;    ///< as with the order watch_input on the first link
  Fd journal;                  ///< for the record
  Fd stdin_file;  ///< input of the command; empty: a pipe, for send_input. A warm child keeps its pipe, and
                  ///< this closes it
};

// The message has no version, because a session and the keepers that it has started have the same build.

/// Error keeper_gone if the keeper has ended.
Result<void> send_assignment(int socket, const Assignment& assignment);
/// Non-blocking. Drops orders for a process that has ended, and returns `nothing` for them.
Received receive_assignment(int socket, Result<Assignment>& assignment);

}  // namespace dockbridge::agent
