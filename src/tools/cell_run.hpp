#pragma once

#include <cstdint>
#include <string>

#include "sandbox/code_sessions.hpp"
#include "tools/cell_report.hpp"
#include "tools/following.hpp"
#include "tools/toolbox.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// How long a call waits for a cell.
struct CellWait {
  milliseconds patience{0};
  milliseconds inactivity{0};  ///< without output
  /// Bytes that the driver writes when the cell begins: the wait passes over that event. 0: it is not expected.
  std::uint64_t begin_bytes = 0;
};

/// A cell at the end of a wait. All events of its process have been read.
struct FollowedCell {
  sandbox::Snapshot snapshot;
  CellStage stage = CellStage::ended;
  bool has_begun = true;
  bool was_refused = false;  ///< another request got its number, so it does not run
};

/// Follows a cell that was sent to a session until it ends, waits for input, falls silent, or the time is up.
Result<FollowedCell> follow_cell(const ToolRequest& call, const sandbox::SessionHandle& session, std::uint64_t cell,
                                 const std::string& key, const CellWait& wait);

/// The same for a process that ends after its only cell: until the process ends.
Result<FollowedCell> follow_whole_process(const ToolRequest& call, const sandbox::SessionHandle& session,
                                          const wire::ProcessState& now, const CellWait& wait);

/// Follows a process like `Following`. For a code session, the wait is also over when the running cell ends, with the
/// outcome `side`.
Result<sandbox::Snapshot> follow_session(const ToolRequest& call, const wire::ProcessState& now,
                                         wire::WaitCondition until, milliseconds patience);

/// A cell of a session: the last one, or an earlier one, which is looked up in the stored events.
Result<sandbox::CellRecord> find_cell(const ToolRequest& call, const sandbox::SessionHandle& session,
                                      std::uint64_t cell, const sandbox::CallLimit& limit);

/// A number that no other request of this or another server has.
std::uint64_t new_request_number();

}  // namespace dockbridge::tools
