#include "agent/session/process.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "agent/spool.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

namespace {

Result<wire::StreamState> stream_state(int directory_fd, const char* name) {
  const auto spool = SpoolReader::open(directory_fd, name);
  return spool ? spool->state() : fail(spool.error());
}

/// Everything but what only a live keeper knows.
Result<wire::ProcessState> describe_records(const std::string& id, const std::string& path, int directory_fd,
                                            bool has_keeper) {
  const auto meta = read_meta(directory_fd);
  const auto status = read_status(directory_fd);
  const auto out = stream_state(directory_fd, "out");
  const auto err = stream_state(directory_fd, "err");
  for (const Error* error : {meta ? nullptr : &meta.error(), status ? nullptr : &status.error(),
                             out ? nullptr : &out.error(), err ? nullptr : &err.error()}) {
    if (error != nullptr) {
      return fail(*error);
    }
  }
  wire::ProcessState state;
  state.id = id;
  state.directory = path;
  state.command = meta->command;
  state.cwd = meta->cwd;
  state.owner = meta->owner;
  state.pid = meta->pid;
  state.started_at_ms = meta->started_at_ms;
  state.out = *out;
  state.err = *err;
  if (*status) {
    const Status& ended = **status;
    state.phase = ended.closed || !has_keeper ? wire::Phase::closed : wire::Phase::exited;
    state.end = ended.end;
    state.end_code = ended.end_code;
    state.cause = ended.cause;
    state.ended_at_ms = ended.ended_at_ms;
  } else if (!has_keeper) {
    state.phase = wire::Phase::lost;
    state.end = wire::EndKind::unknown;
  }
  return state;
}

std::uint64_t milliseconds_since_change(int directory_fd, const char* name, std::int64_t started_at_ms) {
  struct stat info {};
  std::int64_t changed = started_at_ms;
  if (::fstatat(directory_fd, name, &info, 0) == 0) {
    changed = std::max(changed, info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, unix_milliseconds_now() - changed));
}

/// A spool that could not be made, the disk being full, counts nothing; its keeper does.
void count_unstored(std::uint64_t told, wire::StreamState& stream) {
  if (told > stream.total) {
    stream = {told, stream.head_end, told};
  }
}

/// How the command ended, from its keeper where the disk was too full for the record.
void complete_from(const StatePacket& told, wire::ProcessState& state) {
  const bool ended = told.phase == static_cast<std::uint8_t>(wire::Phase::exited) ||
                     told.phase == static_cast<std::uint8_t>(wire::Phase::closed);
  if (!ended || state.ended_at_ms != 0 || told.end > static_cast<std::uint8_t>(wire::EndKind::unknown) ||
      told.cause > static_cast<std::uint8_t>(wire::Cause::terminated)) {
    return;
  }
  state.phase = state.phase == wire::Phase::lost ? wire::Phase::closed : static_cast<wire::Phase>(told.phase);
  state.end = static_cast<wire::EndKind>(told.end);
  state.end_code = told.end_code;
  state.cause = static_cast<wire::Cause>(told.cause);
}

}  // namespace

Result<wire::ProcessState> Process::describe() const {
  auto state = describe_records(id, path, directory.get(), link.has_value());
  if (state && last) {
    state->idle_ms = last->idle_ms;
    state->stdin_open = last->stdin_open != 0 && link.has_value();
    count_unstored(last->out_total, state->out);
    count_unstored(last->err_total, state->err);
    complete_from(*last, *state);
  }
  return state;
}

Result<wire::ProcessState> describe_from_disk(const StateDirectory& directory, const std::string& id) {
  const auto fd = directory.open_process(id);
  if (!fd) {
    return fail(fd.error());
  }
  const auto link = KeeperLink::connect(fd->get());
  const bool has_keeper = link || link.error().code != k_keeper_gone;
  auto state = describe_records(id, directory.path_of(id), fd->get(), has_keeper);
  if (state && state->phase == wire::Phase::running) {
    state->idle_ms = std::min(milliseconds_since_change(fd->get(), "out", state->started_at_ms),
                              milliseconds_since_change(fd->get(), "err", state->started_at_ms));
  }
  return state;
}

}  // namespace dockbridge::agent
