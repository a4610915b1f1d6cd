#include "tools/client_notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

constexpr std::size_t k_max_clients_per_owner = 256;
constexpr std::size_t k_max_watches = 256;  // each has a connection to a keeper in the container
constexpr std::size_t k_max_pending = 32;
constexpr std::size_t k_max_notice_command_bytes = 60;
constexpr std::size_t k_line_bytes = 7;  // "\nNote: "

/// "p3 `node server.js` ended, exit code 1"
std::string end_sentence(const wire::ProcessState& state) {
  std::string end = end_text(state);
  if (state.end == wire::EndKind::exit) {
    end = fmt::format("exit code {}", state.end_code);
  } else if (!end.empty()) {
    end[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(end[0])));
  }
  return fmt::format("{} `{}` ended, {}", process_name(state),
                     printable_line(state.command, k_max_notice_command_bytes), end);
}

bool has_ended(const wire::ProcessState& state) {
  return state.phase == wire::Phase::closed || state.phase == wire::Phase::lost;
}

std::string counted(std::size_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

}  // namespace

ClientNotices::Client& ClientNotices::client_of(const ClientId& id) {
  if (!m_clients.contains(id)) {
    const auto first = m_clients.lower_bound({id.owner, ""});
    const auto end =
        std::find_if(first, m_clients.end(), [&](const auto& entry) { return entry.first.owner != id.owner; });
    if (static_cast<std::size_t>(std::distance(first, end)) >= k_max_clients_per_owner) {
      m_clients.erase(std::min_element(
          first, end, [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
    }
  }
  Client& client = m_clients[id];
  client.last_use = ++m_uses;
  return client;
}

void ClientNotices::bound_pending(Client& client) {
  while (client.pending.size() > k_max_pending) {
    ++(client.pending.front().process.empty() ? client.dropped.others : client.dropped.ends);
    client.pending.erase(client.pending.begin());
  }
}

std::vector<std::string> ClientNotices::board(Client& client, Flight& flight, std::size_t room) {
  std::vector<std::string> sentences;
  const auto fits = [&](const std::string& sentence) {
    const std::size_t needed = sentence.size() + k_line_bytes;
    if (needed > room) {
      room = 0;  // later notices do not overtake this one
      return false;
    }
    room -= needed;
    sentences.push_back(sentence);
    return true;
  };
  auto next = client.pending.begin();
  for (; next != client.pending.end() && fits(next->sentence); ++next) {
    flight.notices.push_back(std::move(*next));
  }
  client.pending.erase(client.pending.begin(), next);
  Dropped& dropped = client.dropped;
  if (dropped.ends > 0 && fits(counted(dropped.ends, "more process ended", "more processes ended"))) {
    flight.dropped.ends = std::exchange(dropped.ends, 0);
  }
  if (dropped.others > 0 && fits(counted(dropped.others, "more notice is left out", "more notices are left out"))) {
    flight.dropped.others = std::exchange(dropped.others, 0);
  }
  if (dropped.watches > 0 && fits(fmt::format("More than {} processes run; the end of {} will not be reported",
                                              k_max_watches, counted(dropped.watches, "older one", "older ones")))) {
    flight.dropped.watches = std::exchange(dropped.watches, 0);
  }
  return sentences;
}

void ClientNotices::add(const ClientId& client, std::string sentence) {
  const MutexLock lock(m_mutex);
  Client& it = client_of(client);
  it.pending.push_back({"", std::move(sentence)});
  bound_pending(it);
}

void ClientNotices::show(const ClientId& client, const std::string& call, sandbox::Sandbox& sandbox,
                         const wire::ProcessState& state, bool started) {
  const bool closed = state.phase == wire::Phase::exited;
  {
    const MutexLock lock(m_mutex);
    const auto known = m_clients.find(client);
    if (known == m_clients.end() && (!started || has_ended(state))) {
      return;
    }
    Client& it = client_of(client);
    const auto watch =
        std::find_if(it.watches.begin(), it.watches.end(), [&](const Watch& w) { return w.process == state.id; });
    const bool is_watched = watch != it.watches.end();
    if (is_watched && watch->closed == closed && !has_ended(state)) {
      return;
    }
    const auto reports_it = [&](const Notice& notice) { return notice.process == state.id; };
    bool was_pending = false;
    if (!state.running()) {
      was_pending = std::erase_if(it.pending, reports_it) > 0;
      for (auto& [number, flight] : it.flights) {
        was_pending = std::erase_if(flight.notices, reports_it) > 0 || was_pending;
      }
    }
    if (is_watched) {
      it.watches.erase(watch);
    }
    if (!state.running() && (is_watched || was_pending)) {
      it.shown.push_back({call, {state.id, end_sentence(state)}});
      if (it.shown.size() > k_max_watches) {
        it.shown.erase(it.shown.begin());  // its call failed without a reply
      }
    }
    if (has_ended(state) || (!started && !is_watched)) {
      return;
    }
    it.watches.push_back({state.id, closed, 0});
    if (it.watches.size() > k_max_watches) {
      ++it.dropped.watches;
      it.watches.erase(it.watches.begin());
    }
  }
  ask_agent(client, sandbox, state.id, closed);
}

void ClientNotices::ask_agent(const ClientId& client, sandbox::Sandbox& sandbox, const std::string& process,
                              bool closed) {
  const auto connection = sandbox.processes().watch_end(
      process, closed, [self = weak_from_this(), client](const wire::ProcessState& state) {
        if (const auto notices = self.lock()) {
          notices->report_end(client, state);
        }
      });
  const MutexLock lock(m_mutex);
  if (const auto known = m_clients.find(client); known != m_clients.end()) {
    for (Watch& watch : known->second.watches) {
      if (watch.process == process) {
        watch.connection = connection;
      }
    }
  }
}

void ClientNotices::report_end(const ClientId& client, const wire::ProcessState& state) {
  const MutexLock lock(m_mutex);
  const auto known = m_clients.find(client);
  if (known == m_clients.end()) {
    return;
  }
  const auto is_meant = [&](const Watch& watch) {
    return watch.process == state.id && (!watch.closed || has_ended(state));
  };
  if (std::erase_if(known->second.watches, is_meant) > 0) {
    known->second.pending.push_back({state.id, end_sentence(state)});
    bound_pending(known->second);
  }
}

std::shared_ptr<NoticeDelivery> ClientNotices::take(const ClientId& client, const std::string& call,
                                                    sandbox::Sandbox& sandbox, std::size_t room,
                                                    Clock::time_point now) {
  std::vector<std::string> sentences;
  std::uint64_t number = 0;  // of the flight; 0 if there is nothing to deliver
  std::vector<Watch> unasked;
  {
    const MutexLock lock(m_mutex);
    const auto known = m_clients.find(client);
    if (known == m_clients.end()) {
      return nullptr;
    }
    Client& it = known->second;
    it.last_use = ++m_uses;
    for (auto flight = it.flights.begin(); flight != it.flights.end();) {
      const bool is_lost = now - flight->second.began >= k_patience;
      if (is_lost) {
        give_back(it, std::move(flight->second));
      }
      flight = is_lost ? it.flights.erase(flight) : std::next(flight);
    }
    // A process end that this reply shows needs no sentence, unless the reply is lost.
    Flight flight{now, {}, {}};
    std::erase_if(it.shown, [&](Shown& shown) {
      const bool is_meant = shown.call == call;
      if (is_meant) {
        flight.notices.push_back(std::move(shown.notice));
      }
      return is_meant;
    });
    sentences = board(it, flight, room);
    if (!flight.notices.empty() || !sentences.empty()) {
      number = it.last_use;
      it.flights.emplace(number, std::move(flight));
    }
    unasked = it.watches;
    if (it.has_nothing()) {
      m_clients.erase(known);
    }
  }
  if (!unasked.empty()) {
    // A watch is lost with its connection.
    const std::uint64_t connection = sandbox.connection_number();
    std::erase_if(unasked, [&](const Watch& watch) { return watch.connection == connection; });
    for (const Watch& watch : unasked) {
      ask_agent(client, sandbox, watch.process, watch.closed);
    }
  }
  if (number == 0) {
    return nullptr;
  }
  return std::make_shared<NoticeDelivery>(
      std::move(sentences),
      [self = shared_from_this(), client, number](bool delivered) { self->end_flight(client, number, delivered); });
}

void ClientNotices::end_flight(const ClientId& client, std::uint64_t flight, bool delivered) {
  const MutexLock lock(m_mutex);
  const auto known = m_clients.find(client);
  if (known == m_clients.end()) {
    return;
  }
  if (auto ended = known->second.flights.extract(flight); ended && !delivered) {
    give_back(known->second, std::move(ended.mapped()));
  }
  if (known->second.has_nothing()) {
    m_clients.erase(known);
  }
}

void ClientNotices::give_back(Client& client, Flight flight) {
  client.pending.insert(client.pending.begin(), std::make_move_iterator(flight.notices.begin()),
                        std::make_move_iterator(flight.notices.end()));
  client.dropped.ends += flight.dropped.ends;
  client.dropped.others += flight.dropped.others;
  client.dropped.watches += flight.dropped.watches;
  bound_pending(client);
}

}  // namespace dockbridge::tools
