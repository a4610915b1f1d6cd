#include "mcp/transport/http/sessions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "util/encoding.hpp"
#include "util/random.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr std::size_t k_id_bytes = 16;
constexpr std::size_t k_max_kept_streams = 64;
/// A session that was idle for this time is ended if its owner needs room for a new one.
constexpr seconds k_spare_after{60};

}  // namespace

Session::Session(std::string id, Hub& hub, Caller caller, Clock::time_point now)
    : m_id(std::move(id)), m_conversation(Conversation::begin(hub, std::move(caller), m_standing)), m_last_used(now) {}

std::shared_ptr<Outbox> Session::new_stream() {
  const MutexLock lock(m_mutex);
  std::erase_if(m_streams, [](const auto& entry) { return entry.second->finished(); });
  if (m_streams.size() >= k_max_kept_streams) {
    m_streams.erase(m_streams.begin());
  }
  // Names of equal length, so that the first in the map is the oldest.
  auto stream = std::make_shared<Outbox>(fmt::format("p{:010}", m_next_stream++));
  m_streams.emplace(stream->name(), stream);
  return stream;
}

std::optional<std::pair<std::shared_ptr<Outbox>, std::uint64_t>> Session::find_event(const std::string& event_id) {
  const std::size_t dash = event_id.find('-');
  std::uint64_t number = 0;
  const char* end = event_id.data() + event_id.size();
  if (dash == std::string::npos || std::from_chars(event_id.data() + dash + 1, end, number).ptr != end) {
    return std::nullopt;
  }
  const std::string name = event_id.substr(0, dash);
  if (name == m_standing->name()) {
    return std::pair{m_standing, number};
  }
  const MutexLock lock(m_mutex);
  const auto found = m_streams.find(name);
  return found == m_streams.end() ? std::nullopt : std::optional(std::pair{found->second, number});
}

bool Session::busy() const {
  return connections > 0 || m_conversation->has_running_calls();
}

std::shared_ptr<Session> Sessions::create(Caller caller, Clock::time_point now) {
  sweep(now);
  std::shared_ptr<Session> spare;
  std::shared_ptr<Session> made;
  {
    const MutexLock lock(m_mutex);
    std::size_t own = 0;
    for (const auto& [id, session] : m_sessions) {
      own += session->conversation()->caller().owner == caller.owner ? 1 : 0;
    }
    if (own >= m_limits.sessions_per_owner) {
      for (const auto& [id, session] : m_sessions) {
        if (session->conversation()->caller().owner == caller.owner && !session->busy() &&
            session->idle(now) > k_spare_after && (!spare || session->idle(now) > spare->idle(now))) {
          spare = session;
        }
      }
      if (!spare) {
        return nullptr;
      }
      m_sessions.erase(spare->id());
    }
    made = std::make_shared<Session>(to_hex(random_bytes(k_id_bytes)), m_hub, std::move(caller), now);
    m_sessions.emplace(made->id(), made);
  }
  if (spare) {
    end(spare);
  }
  return made;
}

std::shared_ptr<Session> Sessions::find(const std::string& id, const std::string& owner, Clock::time_point now) {
  const MutexLock lock(m_mutex);
  const auto found = m_sessions.find(id);
  if (found == m_sessions.end() || found->second->conversation()->caller().owner != owner) {
    return nullptr;
  }
  found->second->touch(now);
  return found->second;
}

void Sessions::remove(const std::string& id) {
  std::shared_ptr<Session> removed;
  {
    const MutexLock lock(m_mutex);
    if (const auto found = m_sessions.find(id); found != m_sessions.end()) {
      removed = std::move(found->second);
      m_sessions.erase(found);
    }
  }
  if (removed) {
    end(removed);
  }
}

void Sessions::end(const std::shared_ptr<Session>& session) {
  session->conversation()->detach_calls();
  session->standing()->close();
}

void Sessions::sweep(Clock::time_point now) {
  std::vector<std::shared_ptr<Session>> old;
  {
    const MutexLock lock(m_mutex);
    for (auto entry = m_sessions.begin(); entry != m_sessions.end();) {
      const bool over = entry->second->idle(now) > m_limits.session_idle && !entry->second->busy();
      if (over) {
        old.push_back(entry->second);
      }
      entry = over ? m_sessions.erase(entry) : std::next(entry);
    }
  }
  for (const auto& session : old) {
    end(session);
  }
}

std::size_t Sessions::count() const {
  const MutexLock lock(m_mutex);
  return m_sessions.size();
}

std::vector<std::shared_ptr<Session>> Sessions::all() const {
  const MutexLock lock(m_mutex);
  std::vector<std::shared_ptr<Session>> sessions;
  for (const auto& [id, session] : m_sessions) {
    sessions.push_back(session);
  }
  return sessions;
}

}  // namespace dockbridge::mcp::http
