#include "agent/session/wait_answer.hpp"

#include <algorithm>

#include "agent/session/ports.hpp"
#include "agent/spool.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

/// nullopt if nothing listens on the port. A process of another owner is described by its pid and command only, which
/// every owner can see anyway.
std::optional<wire::Listener> describe_listener(const StateDirectory& directory, std::uint16_t port,
                                                const Process& process) {
  if (!is_port_open(port)) {
    return std::nullopt;
  }
  const PortOwner found = find_listener(port, process.id);
  wire::Listener listener{found.pid, found.command, found.process == process.id, "", 0};
  const auto record = found.process.empty() ? fail(ErrorCode::no_such_process, "") : directory.read(found.process);
  if (record && record->meta.owner == process.record.meta.owner) {
    listener.process = found.process;
    listener.number = record->meta.number;
  }
  return listener;
}

Result<std::string> whole_stream(const StateDirectory& directory, const std::string& name, std::uint64_t total) {
  if (total == 0) {
    return std::string();
  }
  const auto spool = SpoolReader::open(directory.fd(), name);
  auto slice = spool ? spool->read(0, total) : fail(spool.error());
  if (!slice) {
    return fail(slice.error());
  }
  return slice->bytes.size() == total ? Result<std::string>(std::move(slice->bytes))
                                      : fail(ErrorCode::spool_damaged, "The stored output is incomplete");
}

}  // namespace

Result<wire::WaitAnswer> make_wait_answer(const StateDirectory& directory, const Process& process, const Wait& wait,
                                          wire::WaitOutcome outcome) {
  const auto& pattern = wait.pattern();
  const auto state = process.describe(directory, pattern && pattern->match());
  if (!state) {
    return fail(state.error());
  }
  wire::WaitAnswer answer{.state = *state, .happened = outcome};
  if (pattern) {
    const auto [out, err] = pattern->positions();
    answer.searched = {out, err};
    answer.line = pattern->match() ? pattern->match()->line : "";
  }
  if (state->out.total > 0 && state->err.total > 0) {
    const auto spool = SpoolReader::open(directory.fd(), err_name(process.id));
    answer.order = spool ? spool->order().value_or(wire::WriteOrder{}) : wire::WriteOrder{};
  }
  if (wait.port()) {
    answer.listener = describe_listener(directory, *wait.port(), process);
  }
  const bool has_no_gap = state->out.head_end == state->out.tail_start && state->err.head_end == state->err.tail_start;
  answer.whole = has_no_gap &&
                 state->out.total + state->err.total <= std::min<std::uint64_t>(wait.carry(), wire::k_max_read_bytes);
  if (answer.whole) {
    auto out = whole_stream(directory, out_name(process.id), state->out.total);
    auto err = out ? whole_stream(directory, err_name(process.id), state->err.total) : fail(out.error());
    if (!err) {
      return fail(err.error());
    }
    answer.out = std::move(*out);
    answer.err = std::move(*err);
  }
  return answer;
}

}  // namespace dockbridge::agent
