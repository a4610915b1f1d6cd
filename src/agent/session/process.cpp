#include "agent/session/process.hpp"

#include <algorithm>

#include "agent/session/survivors.hpp"
#include "agent/spool.hpp"

namespace dockbridge::agent {

namespace {

Result<wire::StreamState> stream_state(int directory_fd, const std::string& name) {
  const auto spool = SpoolReader::open(directory_fd, name);
  return spool ? spool->state() : fail(spool.error());
}

wire::ProcessState compose(const StateDirectory& directory, const std::string& id, const Record& record,
                           const std::optional<Status>& status, bool has_keeper, const Moment& now) {
  wire::ProcessState state;
  state.id = id;
  state.number = record.meta.number;
  state.path = directory.path_of(id);
  state.command = record.meta.command;
  state.cwd = record.meta.cwd;
  state.owner = record.meta.owner;
  state.rationale = record.meta.rationale;
  state.session = record.meta.session;
  state.pid = record.kept ? record.kept->pid : 0;
  state.started_at_ms = record.meta.started.unix_ms;
  if (status) {
    state.phase = status->closed || !has_keeper ? wire::Phase::closed : wire::Phase::exited;
    state.end = status->end;
    state.end_code = status->end_code;
    state.cause = status->cause;
    state.ended_at_ms = status->ended.unix_ms;
    if (status->ended.uptime_ms > 0) {
      state.ran_ms =
          std::clamp<std::int64_t>(status->ended.uptime_ms - record.meta.started.uptime_ms, 0, wire::k_max_time_ms);
    }
    state.used = status->used;
  } else if (!has_keeper) {
    state.phase = wire::Phase::lost;
    state.end = wire::EndKind::unknown;
  } else {
    state.ran_ms = std::clamp<std::int64_t>(age(record.meta.started, now).count(), 0, wire::k_max_time_ms);
  }
  return state;
}

/// Time since the last output of a running process, or since its start.
milliseconds idle_time(const StateDirectory& directory, const std::string& id, const Moment& started,
                       const Moment& now) {
  milliseconds idle = age(started, now);
  for (const std::string& name : {out_name(id), err_name(id), side_name(id)}) {
    const auto spool = SpoolReader::open(directory.fd(), name);
    const auto changed = spool ? spool->changed_at() : fail(spool.error());
    if (changed && *changed > 0) {
      idle = std::min(idle, milliseconds(now.uptime_ms - *changed));
    }
  }
  return std::max(idle, milliseconds::zero());
}

/// End of the command; nullopt if the keeper reports none.
std::optional<Status> status_in(const StatePacket& state) {
  const bool ended = state.phase == static_cast<std::uint8_t>(wire::Phase::exited) ||
                     state.phase == static_cast<std::uint8_t>(wire::Phase::closed);
  if (!ended || state.end > static_cast<std::uint8_t>(wire::EndKind::unknown)) {
    return std::nullopt;
  }
  return Status{static_cast<wire::EndKind>(state.end),
                state.end_code,
                wire::cause_from(state.cause),
                {state.ended_at_ms, state.ended_uptime_ms},
                state.phase == static_cast<std::uint8_t>(wire::Phase::closed),
                state.used};
}

/// The state of the spool. Bytes that the keeper has counted beyond it could not be stored.
Result<wire::StreamState> stream_state(int directory_fd, const std::string& name,
                                       std::optional<std::uint64_t> reported) {
  if (reported == 0U) {
    return wire::StreamState{};
  }
  auto stream = stream_state(directory_fd, name);
  if (stream && reported && *reported > stream->total) {
    stream = wire::StreamState{*reported, stream->head_end, *reported};
  }
  return stream;
}

}  // namespace

Result<wire::ProcessState> Process::describe(const StateDirectory& directory, bool has_seen_output) const {
  std::optional<Status> status = last ? status_in(*last) : std::nullopt;
  if (!link && (!status || !status->closed)) {
    // The keeper is gone. Its last record counts, or its last report if the disk was full.
    auto written = directory.read(id);
    if (!written) {
      return fail(written.error());
    }
    status = written->status ? written->status : status;
  }
  wire::ProcessState state = compose(directory, id, record, status, link.has_value(), now());
  const auto reported = [&](std::uint64_t StatePacket::*total) {
    const bool is_known = last && link && !(has_seen_output && (*last).*total == 0);
    return is_known ? std::optional((*last).*total) : std::nullopt;
  };
  auto out = stream_state(directory.fd(), out_name(id), reported(&StatePacket::out_total));
  auto err = stream_state(directory.fd(), err_name(id), reported(&StatePacket::err_total));
  auto side = stream_state(directory.fd(), side_name(id), reported(&StatePacket::side_total));
  if (!out || !err || !side) {
    return fail(!out ? out.error() : !err ? err.error() : side.error());
  }
  state.out = *out;
  state.err = *err;
  state.side = *side;
  if (state.phase == wire::Phase::lost) {
    state.children = count_survivors(id);
    return state;
  }
  if (last) {
    state.pid = last->pid;
    state.idle_ms = last->idle_ms;
    state.stdin_open = last->stdin_open != 0 && link.has_value();
    state.terminal = last->terminal != 0;
    state.used = last->used;
    state.children = last->children;
    describe_activity(state);
  }
  return state;
}

void Process::describe_activity(wire::ProcessState& state) const {
  if (!link || !last) {
    return;
  }
  state.paused = last->paused != 0;
  if (last->waits_for_input <= static_cast<std::uint8_t>(wire::WaitsForInput::unknown)) {
    state.waits_for_input = static_cast<wire::WaitsForInput>(last->waits_for_input);
  }
}

Result<wire::ProcessState> describe_from_disk(const StateDirectory& directory, const std::string& id, Record record,
                                              bool has_keeper, const Moment& now) {
  if (!has_keeper) {
    const auto link = KeeperLink::find(directory.fd(), id, record, now);
    has_keeper = !link || *link;
  }
  if (!has_keeper && !record.status) {
    // The keeper may have written its last line after this record was read.
    auto again = directory.read(id);
    if (!again) {
      return fail(again.error());
    }
    record = std::move(*again);
  }
  const auto out = stream_state(directory.fd(), out_name(id));
  const auto err = stream_state(directory.fd(), err_name(id));
  const auto side = stream_state(directory.fd(), side_name(id));
  if (!out || !err || !side) {
    return fail(!out ? out.error() : !err ? err.error() : side.error());
  }
  wire::ProcessState state = compose(directory, id, record, record.status, has_keeper, now);
  state.out = *out;
  state.err = *err;
  state.side = *side;
  if (state.phase == wire::Phase::running || state.phase == wire::Phase::exited) {
    state.idle_ms = static_cast<std::uint64_t>(idle_time(directory, id, record.meta.started, now).count());
  }
  return state;
}

}  // namespace dockbridge::agent
