#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/record.hpp"
#include "agent/session/keeper_link.hpp"
#include "agent/session/state_directory.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// A request that sends input to the process and waits until its keeper reports how much was accepted.
struct PendingInput {
  std::uint64_t request = 0;
  std::uint64_t most = 0;  ///< bytes, keys or signals in the request
  bool once = false;       ///< has an idempotency key: the keeper's reply says what was accepted earlier
};

/// A session's view of one process: its record, and its keeper while it has one.
struct Process {
  std::string id;
  Record record;
  std::optional<KeeperLink> link;
  std::optional<StatePacket> last;             ///< latest report of the keeper
  std::deque<PendingInput> input_requests;     ///< requests whose input the keeper has not acknowledged yet
  std::vector<std::uint64_t> screen_requests;  ///< requests that wait until the keeper has written the screen
  std::uint32_t input_watched = 0;             ///< what the keeper was asked to report: k_watch_input, k_watch_answer
  bool has_own_keeper = false;                 ///< this session started the keeper and did not find it by its name

  /// Combines the keeper's report, or the record if the keeper is gone, with the state of the spools. A spool is not
  /// read if the report counts no bytes of its stream. `has_seen_output` means that the caller has read newer output,
  /// so the spool is read even then.
  [[nodiscard]] Result<wire::ProcessState> describe(const StateDirectory& directory, bool has_seen_output) const;
  /// Adds from the keeper's report, if there is one, whether the process is paused and waits for input.
  void describe_activity(wire::ProcessState& state) const;
};

/// Describes a process for a listing, from disk. Without `has_keeper` it also checks whether a keeper exists.
Result<wire::ProcessState> describe_from_disk(const StateDirectory& directory, const std::string& id, Record record,
                                              bool has_keeper, const Moment& now);

}  // namespace dockbridge::agent
