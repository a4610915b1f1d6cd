#include "agent/session/output_requests.hpp"

#include <algorithm>
#include <vector>

#include "agent/spool.hpp"

namespace dockbridge::agent {

namespace {

std::string spool_name(const std::string& process, wire::Stream stream) {
  switch (stream) {
    case wire::Stream::out:
      return out_name(process);
    case wire::Stream::err:
      return err_name(process);
    case wire::Stream::side:
      return side_name(process);
  }
  return {};
}

}  // namespace

Result<void> OutputRequests::read(std::uint64_t request, const wire::ReadRequest& message) {
  const std::string& id = message.process;
  const auto spool = SpoolReader::open(m_state.fd(), spool_name(id, message.stream));
  if (!spool) {
    return fail(spool.error());
  }
  if (const auto record = spool->exists() ? Record() : m_state.read(id); !record) {
    return fail(record.error());
  }
  auto slice = spool->read(message.offset, std::min<std::uint64_t>(message.max, wire::k_max_read_bytes));
  if (!slice) {
    return fail(slice.error());
  }
  const wire::ReadAnswer answer{slice->offset, std::move(slice->bytes), slice->state};
  m_replies.send(request, answer);
  return {};
}

void OutputRequests::list(std::uint64_t request, const wire::ListRequest& message) {
  struct Listed {
    std::string id;
    Record record;
    milliseconds ago{0};  ///< since the recorded end, else since the start
  };
  std::vector<Listed> active;  // not recorded as closed; they may have lost their keeper
  std::vector<Listed> finished;
  std::size_t unreadable = 0;
  const Moment at = now();
  m_state.visit([&](const std::string& id, const Result<Record>& record) {
    unreadable += record ? 0 : 1;
    if (record && record->meta.owner == message.owner) {
      const bool has_finished = record->status && record->status->closed;
      const Moment& moment = has_finished ? record->status->ended : record->meta.started;
      (has_finished ? finished : active).push_back({id, *record, age(moment, at)});
    }
  });
  const std::size_t total = active.size() + finished.size();
  // A process may start in the millisecond in which another one has ended.
  const auto latest_first = [](const Listed& a, const Listed& b) {
    return a.ago != b.ago ? a.ago < b.ago : a.record.meta.number > b.record.meta.number;
  };
  wire::ListBody body;
  bool has_room = true;
  const auto add = [&](wire::ProcessState state) {
    state.command = utf8_prefix(state.command, 200);
    has_room = has_room && body.size() < message.most && body.add(state);
  };
  const auto describe = [&](const Listed& entry) {
    const Process* known = m_processes.known(entry.id);
    const bool has_keeper = known != nullptr && known->link.has_value();
    auto state = describe_from_disk(m_state, entry.id, entry.record, has_keeper, at);
    unreadable += state ? 0 : 1;
    // A report that is older than the latest output may be outdated.
    if (state && has_keeper && known->last && known->last->out_total == state->out.total &&
        known->last->err_total == state->err.total) {
      known->describe_activity(*state);
    }
    return state;
  };
  std::sort(active.begin(), active.end(), latest_first);
  for (Listed& entry : active) {
    const auto state = describe(entry);
    if (state && (state->phase == wire::Phase::running || state->phase == wire::Phase::exited)) {
      add(*state);
    } else if (state) {
      finished.push_back(std::move(entry));
    }
  }
  std::sort(finished.begin(), finished.end(), latest_first);
  for (std::size_t i = 0, described = 0; i < finished.size() && described < message.most_finished && has_room; ++i) {
    if (const auto state = describe(finished[i])) {
      add(*state);
      ++described;
    }
  }
  m_replies.send(request, wire::to_json(wire::ListAnswer{.left_out = total - body.size(), .unreadable = unreadable}),
                 body.text());
}

}  // namespace dockbridge::agent
