#include "tools/cell_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/process_report.hpp"
#include "util/random.hpp"
#include "wire/side_channel.hpp"

namespace dockbridge::tools {

namespace {

using sandbox::CellProgress;
using sandbox::CellRecord;
using sandbox::SessionHandle;
using sandbox::Snapshot;
using wire::WaitOutcome;

/// Longest wait that passes over the event that a cell has begun. Most cells end sooner, and need only one wait.
constexpr milliseconds k_quick_wait{30};

/// The snapshot was taken before the events were read, and may lack output that the cell wrote before its end.
Result<Snapshot> with_output_of(const ToolRequest& call, const SessionHandle& session, Snapshot snapshot,
                                const sandbox::CallLimit& limit) {
  const wire::Offsets end = session->output_end();
  if (snapshot.state.out.total >= end.first && snapshot.state.err.total >= end.second) {
    return snapshot;
  }
  auto later = call.sandbox.processes().wait(session->id(), milliseconds(0), {}, limit);
  if (later) {
    later->happened = snapshot.happened;
  }
  return later;
}

CellStage stage_of(WaitOutcome happened) {
  return happened == WaitOutcome::input  ? CellStage::waits_for_input
         : happened == WaitOutcome::idle ? CellStage::quiet
                                         : CellStage::waited_enough;
}

}  // namespace

Result<FollowedCell> follow_cell(const ToolRequest& call, const SessionHandle& session, std::uint64_t cell,
                                 const std::string& key, const CellWait& wait) {
  const auto deadline = Deadline::after(wait.patience);
  const auto limit = call.limit(wait.patience);
  wire::ProcessState now;
  now.id = session->id();
  const wire::Offsets before = session->output_end();
  now.out.total = before.first;
  now.err.total = before.second;
  bool is_quick = wait.begin_bytes > 0;
  while (true) {
    wire::WaitCondition until{.known_side = session->next_offset(), .input = true};
    Result<Snapshot> snapshot;
    const CellProgress known = session->progress_of(cell, key);
    if (known == CellProgress::ended || known == CellProgress::earlier) {
      snapshot = call.sandbox.processes().wait(session->id(), milliseconds(0), {}, limit);
    } else if (is_quick) {
      *until.known_side += sizeof(wire::SidePieceHeader) + wait.begin_bytes;
      snapshot = call.sandbox.processes().wait(
          session->id(), std::min({k_quick_wait, wait.inactivity, deadline.remaining()}), until, limit);
    } else {
      until.idle = wait.inactivity;
      snapshot = Following(call, until, deadline.remaining()).join(now);
    }
    if (!snapshot) {
      return fail(snapshot.error());
    }
    if (const auto read = call.sandbox.sessions().read_events(session, limit, snapshot->state.side.total); !read) {
      return fail(read.error());
    }
    now = snapshot->state;
    const CellProgress progress = session->progress_of(cell, key);
    if (progress == CellProgress::refused) {
      return FollowedCell{std::move(*snapshot), CellStage::ended, false, true};
    }
    if (progress == CellProgress::ended || progress == CellProgress::earlier) {
      auto complete = with_output_of(call, session, std::move(*snapshot), limit);
      return complete ? Result<FollowedCell>(FollowedCell{std::move(*complete)}) : fail(complete.error());
    }
    if (!snapshot->state.running()) {
      call.sandbox.sessions().note_died(session);
      return FollowedCell{std::move(*snapshot), CellStage::died, progress == CellProgress::running};
    }
    const bool continues = snapshot->happened == WaitOutcome::side ||
                           (is_quick && snapshot->happened == WaitOutcome::nothing && !deadline.passed());
    is_quick = false;
    if (!continues) {
      const CellStage stage = stage_of(snapshot->happened);
      return FollowedCell{std::move(*snapshot), stage, progress == CellProgress::running};
    }
  }
}

Result<FollowedCell> follow_whole_process(const ToolRequest& call, const SessionHandle& session,
                                          const wire::ProcessState& now, const CellWait& wait) {
  const wire::WaitCondition until{.idle = wait.inactivity, .input = true};
  auto snapshot = Following(call, until, wait.patience).join(now);
  if (!snapshot) {
    return fail(snapshot.error());
  }
  const auto read = call.sandbox.sessions().read_events(session, call.limit(wait.patience), snapshot->state.side.total);
  if (!read) {
    return fail(read.error());
  }
  const auto cell = session->cell();
  CellStage stage = stage_of(snapshot->happened);
  if (!snapshot->state.running()) {
    stage = cell && cell->end ? CellStage::ended : CellStage::died;
    call.sandbox.sessions().note_died(session);
  }
  return FollowedCell{std::move(*snapshot), stage, cell.has_value()};
}

Result<Snapshot> follow_session(const ToolRequest& call, const wire::ProcessState& now, wire::WaitCondition until,
                                milliseconds patience) {
  if (!now.session || !now.running()) {
    return Following(call, std::move(until), patience).join(now);
  }
  const auto deadline = Deadline::after(patience);
  const auto limit = call.limit(patience);
  auto& sessions = call.sandbox.sessions();
  const auto session = sessions.handle(now.id, call.context.owner);
  if (const auto read = sessions.read_events(session, limit, now.side.total); !read) {
    return fail(read.error());
  }
  if (!session->is_busy()) {
    return Following(call, std::move(until), patience).join(now);
  }
  const std::uint64_t cell = session->last_cell();
  wire::ProcessState state = now;
  while (true) {
    until.known_side = session->next_offset();
    auto snapshot = Following(call, until, deadline.remaining()).join(state);
    if (!snapshot || snapshot->happened != WaitOutcome::side) {
      return snapshot;
    }
    if (const auto read = sessions.read_events(session, limit, snapshot->state.side.total); !read) {
      return fail(read.error());
    }
    if (session->last_cell() != cell || !session->is_busy()) {
      return with_output_of(call, session, std::move(*snapshot), limit);
    }
    state = snapshot->state;
  }
}

Result<CellRecord> find_cell(const ToolRequest& call, const SessionHandle& session, std::uint64_t number,
                             const sandbox::CallLimit& limit) {
  auto cell = session->cell();
  if (cell && cell->number == number) {
    return std::move(*cell);
  }
  if (session->last_cell() < number) {  // it was sent, and has not begun
    CellRecord waiting;
    waiting.number = number;
    waiting.output_from = session->output_end();
    return waiting;
  }
  std::optional<CellRecord> found;
  const auto searched = call.sandbox.sessions().for_each_cell(
      session->id(),
      [&](const CellRecord& record) {
        if (record.number == number) {
          found = record;
        }
      },
      limit);
  if (!searched) {
    return fail(searched.error());
  }
  return found ? Result<CellRecord>(std::move(*found))
               : fail(ErrorCode::resource_not_found, fmt::format("The result of cell {} is no longer stored", number));
}

std::uint64_t new_request_number() {
  std::uint32_t number = 0;
  std::memcpy(&number, random_bytes(sizeof number).data(), sizeof number);
  return number;
}

}  // namespace dockbridge::tools
