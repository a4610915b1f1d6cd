#include "tools/client_notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

constexpr std::size_t k_max_clients = 256;
constexpr std::size_t k_max_watches = 64;
constexpr std::size_t k_max_pending = 32;
constexpr std::size_t k_max_command_bytes = 60;

/// "p3 `node server.js` ended, exit code 1"
std::string end_sentence(const wire::ProcessState& state) {
  std::string end = end_text(state);
  if (state.end == wire::EndKind::exit) {
    end = fmt::format("exit code {}", state.end_code);
  } else if (!end.empty()) {
    end[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(end[0])));
  }
  return fmt::format("{} `{}` ended, {}", process_name(state), printable_line(state.command, k_max_command_bytes), end);
}

bool has_ended(const wire::ProcessState& state) {
  return state.phase == wire::Phase::closed || state.phase == wire::Phase::lost;
}

template <typename Element>
void drop_oldest(std::vector<Element>& elements, std::size_t most) {
  if (elements.size() > most) {
    elements.erase(elements.begin(), elements.end() - static_cast<std::ptrdiff_t>(most));
  }
}

}  // namespace

NoticeDelivery::~NoticeDelivery() {
  if (m_give_back) {
    m_shown.insert(m_shown.end(), m_notices.begin(), m_notices.end());
    m_give_back(std::move(m_shown));
  }
}

ClientNotices::Client& ClientNotices::client_of(const std::string& name) {
  if (!m_clients.contains(name) && m_clients.size() >= k_max_clients) {
    m_clients.erase(std::min_element(m_clients.begin(), m_clients.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    }));
  }
  Client& client = m_clients[name];
  client.last_use = ++m_uses;
  return client;
}

void ClientNotices::push(Client& client, Notice notice) {
  client.pending.push_back(std::move(notice));
  drop_oldest(client.pending, k_max_pending);
}

void ClientNotices::add(const std::string& client, std::string sentence) {
  const std::lock_guard lock(m_mutex);
  push(client_of(client), {"", std::move(sentence)});
}

void ClientNotices::show(const std::string& client, const std::string& call, sandbox::Sandbox& sandbox,
                         const wire::ProcessState& state, bool started) {
  const bool closed = state.phase == wire::Phase::exited;
  {
    const std::lock_guard lock(m_mutex);
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
    const bool was_pending = !state.running() && std::erase_if(it.pending, reports_it) > 0;
    if (is_watched) {
      it.watches.erase(watch);
    }
    if (!state.running() && (is_watched || was_pending)) {
      it.shown.push_back({call, {state.id, end_sentence(state)}});
      drop_oldest(it.shown, k_max_pending);
    }
    if (has_ended(state) || (!started && !is_watched)) {
      return;
    }
    it.watches.push_back({state.id, closed, 0});
    drop_oldest(it.watches, k_max_watches);
  }
  ask_agent(client, sandbox, state.id, closed);
}

void ClientNotices::ask_agent(const std::string& client, sandbox::Sandbox& sandbox, const std::string& process,
                              bool closed) {
  const auto connection =
      sandbox.watch_end(process, closed, [self = weak_from_this(), client](const wire::ProcessState& state) {
        if (const auto notices = self.lock()) {
          notices->report_end(client, state);
        }
      });
  const std::lock_guard lock(m_mutex);
  if (const auto known = m_clients.find(client); known != m_clients.end()) {
    for (Watch& watch : known->second.watches) {
      if (watch.process == process) {
        watch.connection = connection;
      }
    }
  }
}

void ClientNotices::report_end(const std::string& client, const wire::ProcessState& state) {
  const std::lock_guard lock(m_mutex);
  const auto known = m_clients.find(client);
  if (known == m_clients.end()) {
    return;
  }
  const auto is_meant = [&](const Watch& watch) {
    return watch.process == state.id && (!watch.closed || has_ended(state));
  };
  if (std::erase_if(known->second.watches, is_meant) > 0) {
    push(known->second, {state.id, end_sentence(state)});
  }
}

std::shared_ptr<NoticeDelivery> ClientNotices::take(const std::string& client, const std::string& call,
                                                    sandbox::Sandbox& sandbox) {
  std::vector<Notice> notices;
  std::vector<Notice> shown;
  std::vector<Watch> unasked;
  {
    const std::lock_guard lock(m_mutex);
    const auto known = m_clients.find(client);
    if (known == m_clients.end()) {
      return nullptr;
    }
    known->second.last_use = ++m_uses;
    notices = std::exchange(known->second.pending, {});
    unasked = known->second.watches;
    std::erase_if(known->second.shown, [&](Shown& it) {
      if (it.call == call) {
        shown.push_back(std::move(it.notice));
      }
      return it.call == call;
    });
    if (unasked.empty() && known->second.shown.empty()) {
      m_clients.erase(known);
    }
  }
  if (!unasked.empty()) {
    // What an earlier connection was asked for is lost with it.
    const std::uint64_t connection = sandbox.connection_number();
    std::erase_if(unasked, [&](const Watch& watch) { return watch.connection == connection; });
    for (const Watch& watch : unasked) {
      ask_agent(client, sandbox, watch.process, watch.closed);
    }
  }
  if (notices.empty() && shown.empty()) {
    return nullptr;
  }
  return std::make_shared<NoticeDelivery>(std::move(notices), std::move(shown),
                                          [self = shared_from_this(), client](std::vector<Notice> returned) {
                                            self->give_back(client, std::move(returned));
                                          });
}

void ClientNotices::give_back(const std::string& client, std::vector<Notice> notices) {
  const std::lock_guard lock(m_mutex);
  Client& it = client_of(client);
  notices.insert(notices.end(), it.pending.begin(), it.pending.end());
  it.pending = std::move(notices);
  drop_oldest(it.pending, k_max_pending);
}

}  // namespace dockbridge::tools
