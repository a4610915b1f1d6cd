#include <sys/epoll.h>

#include <algorithm>
#include <csignal>

#include "agent/session/session.hpp"
#include "agent/spool.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr std::size_t k_max_read_bytes = 256 * 1024;
/// A listing travels in one body; what does not fit is counted.
constexpr std::size_t k_max_list_bytes = wire::k_max_body_to_host - 4096;

/// How long after its time is up a waiter still gives a keeper that was asked for news.
constexpr milliseconds k_keeper_patience{1000};

}  // namespace

Result<std::string> Session::process_id_of(const json& head) {
  auto id = head.at("process").get<std::string>();
  if (!wire::is_process_id(id)) {
    return fail("bad_request", "not a process id");
  }
  return id;
}

Session::Waiter Session::read_waiter(std::uint64_t request, const std::string& process, const json& head) {
  Waiter waiter;
  waiter.request = request;
  waiter.process = process;
  waiter.deadline = Clock::now() + milliseconds(head.at("timeoutMs").get<std::uint32_t>());
  waiter.carry = head.at("carry").get<std::uint64_t>();
  if (const auto known = head.find("known"); known != head.end()) {
    waiter.wants_growth = true;
    waiter.known_out = known->at(0).get<std::uint64_t>();
    waiter.known_err = known->at(1).get<std::uint64_t>();
  }
  return waiter;
}

Result<void> Session::wait(std::uint64_t request, const wire::Frame& frame) {
  const json& head = frame.head;
  const auto id = process_id_of(head);
  if (!id) {
    return fail(id.error());
  }
  const auto process = find(*id);
  if (!process) {
    return fail(process.error());
  }
  Waiter waiter = read_waiter(request, *id, head);
  if ((*process)->link) {
    (void)(*process)->link->query();  // a keeper that is gone hangs up, and one that is busy is asked again later
    m_waiters.push_back(std::move(waiter));
  } else {
    answer_wait(waiter, **process);
    m_processes.erase(*id);
  }
  return {};
}

Result<void> Session::read(std::uint64_t request, const wire::Frame& frame) {
  const json& head = frame.head;
  const auto id = process_id_of(head);
  if (!id) {
    return fail(id.error());
  }
  const bool is_err = head.at("stream").get<std::string>() == "err";
  const auto spool = SpoolReader::open(m_state.fd(), is_err ? err_name(*id) : out_name(*id));
  if (!spool) {
    return fail(spool.error());
  }
  if (const auto record = spool->exists() ? Record() : m_state.read(*id); !record) {
    return fail(record.error());
  }
  const auto slice = spool->read(head.at("offset").get<std::uint64_t>(),
                                 std::min(head.at("max").get<std::size_t>(), k_max_read_bytes));
  if (!slice) {
    return fail(slice.error());
  }
  answer(request, {{"offset", slice->offset}, {"stream", wire::to_json(slice->state)}}, slice->bytes);
  return {};
}

Result<void> Session::input(std::uint64_t request, const wire::Frame& frame) {
  const auto id = process_id_of(frame.head);
  const auto process = id ? find_live(*id) : fail(id.error());
  if (!process) {
    return fail(process.error());
  }
  if (frame.body.size() > k_max_control_payload) {
    return fail("bad_request", "too much input for one request");
  }
  if (auto sent = (*process)->link->input(frame.body, frame.head.at("eof").get<bool>()); !sent) {
    return sent;
  }
  (*process)->input_requests.push_back(request);
  return {};
}

Result<void> Session::signal(std::uint64_t request, const wire::Frame& frame) {
  const auto id = process_id_of(frame.head);
  const auto process = id ? find_live(*id) : fail(id.error());
  if (!process) {
    return fail(process.error());
  }
  const int number = frame.head.at("signal").get<int>();
  if (number < 1 || number > SIGRTMAX) {
    return fail("bad_request", "not a signal number");
  }
  if (auto sent = (*process)->link->signal(number); !sent) {
    return sent;
  }
  answer(request, json::object());
  return {};
}

Result<void> Session::end(std::uint64_t request, const wire::Frame& frame) {
  const auto id = process_id_of(frame.head);
  const auto process = id ? find_live(*id) : fail(id.error());
  if (!process) {
    return fail(process.error());
  }
  const auto cause = frame.head.at("cause").get<std::string>() == name_of(wire::Cause::cancelled)
                         ? wire::Cause::cancelled
                         : wire::Cause::terminated;
  if (auto sent = (*process)->link->end_tree(cause, frame.head.at("graceMs").get<std::uint32_t>()); !sent) {
    return sent;
  }
  answer(request, json::object());
  return {};
}

void Session::list(std::uint64_t request) {
  std::vector<wire::ProcessState> states;
  std::size_t unreadable = 0;
  m_state.visit([&](const std::string& id, const Result<Record>& record) {
    if (auto state = record ? describe_from_disk(m_state, id, *record) : fail(record.error())) {
      states.push_back(std::move(*state));
    } else {
      ++unreadable;
    }
  });
  std::sort(states.begin(), states.end(),
            [](const auto& a, const auto& b) { return a.started_at_ms > b.started_at_ms; });
  std::string body = "{\"processes\":[";
  std::size_t listed = 0;
  for (wire::ProcessState& state : states) {
    state.command = utf8_prefix(state.command, 200);
    const std::string text = to_json(state).dump(-1, ' ', false, json::error_handler_t::replace);
    if (listed == wire::k_max_listed_processes || body.size() + text.size() > k_max_list_bytes) {
      break;
    }
    body += (listed++ == 0 ? "" : ",") + text;
  }
  body += "]}";
  answer(request, {{"left", states.size() - listed}, {"unreadable", unreadable}}, body);
}

Result<Process*> Session::find(const std::string& id) {
  if (const auto known = m_processes.find(id); known != m_processes.end()) {
    return known->second.get();
  }
  auto record = m_state.read(id);
  if (!record) {
    return fail(record.error());
  }
  auto link = KeeperLink::find(m_state.fd(), id, *record);
  if (!link) {
    return fail(link.error());
  }
  auto& process = *(m_processes[id] = std::make_unique<Process>());
  process.id = id;
  process.record = std::move(*record);
  if (*link) {
    attach(process, std::move(**link));
  }
  return &process;
}

Result<Process*> Session::find_live(const std::string& id) {
  auto process = find(id);
  if (process && !(*process)->link) {
    m_processes.erase(id);
    return fail("process_ended", "the process has ended already",
                "check_process tells how it ended and what it printed");
  }
  return process;
}

void Session::attach(Process& process, KeeperLink link) {
  process.link.emplace(std::move(link));
  m_loop.add(process.link->fd(), EPOLLIN, [this, id = process.id](std::uint32_t) { on_keeper(id); });
}

void Session::on_keeper(const std::string& id) {
  const auto known = m_processes.find(id);
  if (known == m_processes.end() || !known->second->link) {
    return;
  }
  Process& process = *known->second;
  ControlPacket packet;
  switch (process.link->receive(packet)) {
    case Received::nothing:
      return;
    case Received::packet:
      on_keeper_packet(process, packet);
      return;
    case Received::hangup:
      break;
  }
  detach(process);
  serve_waiters(process);
  m_processes.erase(id);
}

void Session::on_keeper_packet(Process& process, const ControlPacket& packet) {
  switch (static_cast<Answer>(packet.header.type)) {
    case Answer::state: {
      StatePacket state;
      const std::size_t rest = sizeof state - sizeof state.header;
      if (packet.payload.size() < rest) {
        return;
      }
      state.header = packet.header;
      std::copy_n(packet.payload.data(), rest, reinterpret_cast<char*>(&state) + sizeof state.header);
      process.last = state;
      serve_waiters(process);
      if (state.header.value == k_keeper_is_free) {
        take_back_keeper(process.id);
      }
      return;
    }
    case Answer::accepted:
      if (!process.input_requests.empty()) {
        answer(process.input_requests.front(), {{"accepted", packet.header.value}});
        process.input_requests.pop_front();
      }
      return;
    case Answer::start_failed:
      on_start_failed(process.id, packet.payload);
      return;
  }
}

void Session::on_start_failed(std::string id, std::string_view reason) {
  Error error;
  const std::size_t first = reason.find('\n');
  const std::size_t second = reason.find('\n', first + 1);
  error.code = reason.substr(0, first);
  error.message = reason.substr(first + 1, second - first - 1);
  error.next_step = reason.substr(second + 1);
  const auto mine = [&](const Waiter& waiter) { return waiter.process == id; };
  for (const Waiter& waiter : m_waiters) {
    if (mine(waiter)) {
      refuse(waiter.request, error);
    }
  }
  std::erase_if(m_waiters, mine);
  take_back_keeper(id);
  m_state.remove(id);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the caller's may be the id of the process that goes
void Session::take_back_keeper(std::string id) {
  m_keepers.give_back(*detach(*m_processes.at(id)));
  m_processes.erase(id);
}

std::optional<KeeperLink> Session::detach(Process& process) {
  std::optional<KeeperLink> link = std::exchange(process.link, std::nullopt);
  if (link) {
    m_loop.remove(link->fd());
  }
  for (const std::uint64_t request : process.input_requests) {
    refuse(request, {"process_ended", "the process ended before it took the input",
                     "check_process tells how it ended and what it printed"});
  }
  process.input_requests.clear();
  return link;
}

void Session::serve_waiters(Process& process) {
  const bool ended = !process.link || (process.last && process.last->phase != 0);
  bool growth_wanted = false;
  std::vector<Waiter> due;
  std::erase_if(m_waiters, [&](const Waiter& waiter) {
    if (waiter.process != process.id) {
      return false;
    }
    const bool grew = waiter.wants_growth && process.last &&
                      (process.last->out_total > waiter.known_out || process.last->err_total > waiter.known_err);
    if (ended || grew || waiter.expired || waiter.deadline <= Clock::now()) {
      due.push_back(waiter);
      return true;
    }
    growth_wanted = growth_wanted || waiter.wants_growth;
    return false;
  });
  for (const Waiter& waiter : due) {
    answer_wait(waiter, process);
  }
  if (growth_wanted && process.link) {
    (void)process.link->watch_growth();
  }
}

/// What a keeper said last may be old by now: ask it once more, and answer when it has spoken. A keeper that does not
/// (stopped by a signal, say) is not waited for long: what the records say is then the answer.
void Session::expire_waiters() {
  const auto now = Clock::now();
  std::vector<Waiter> given_up;
  std::erase_if(m_waiters, [&](Waiter& waiter) {
    if (waiter.deadline > now) {
      return false;
    }
    if (waiter.expired) {
      given_up.push_back(waiter);
      return true;
    }
    waiter.expired = true;
    waiter.deadline = now + k_keeper_patience;
    if (const auto known = m_processes.find(waiter.process); known != m_processes.end() && known->second->link) {
      (void)known->second->link->query();
    }
    return false;
  });
  for (const Waiter& waiter : given_up) {
    answer_wait(waiter, *m_processes.at(waiter.process));
  }
}

void Session::answer_wait(const Waiter& waiter, const Process& process) {
  const auto state = process.describe(m_state);
  if (!state) {
    refuse(waiter.request, state.error());
    return;
  }
  json head = {{"process", to_json(*state)}, {"carried", false}};
  std::string body;
  const bool whole = state->out.head_end == state->out.tail_start && state->err.head_end == state->err.tail_start;
  if (whole && state->out.total + state->err.total <= std::min<std::uint64_t>(waiter.carry, k_max_read_bytes)) {
    for (const auto& [name, total] :
         {std::pair(out_name(process.id), state->out.total), std::pair(err_name(process.id), state->err.total)}) {
      if (total == 0) {
        continue;
      }
      const auto spool = SpoolReader::open(m_state.fd(), name);
      const auto slice = spool ? spool->read(0, total) : fail(spool.error());
      if (!slice || slice->bytes.size() != total) {
        refuse(waiter.request, slice ? Error{"spool_damaged", "the stored output is incomplete"} : slice.error());
        return;
      }
      body += slice->bytes;
    }
    head["carried"] = true;
  }
  answer(waiter.request, std::move(head), body);
}

}  // namespace dockbridge::agent
