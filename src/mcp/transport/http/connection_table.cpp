#include "mcp/transport/http/connection_table.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace dockbridge::mcp::http {

std::size_t ConnectionTable::count(const std::string& address) const {
  const auto found = m_by_address.find(address);
  return found == m_by_address.end() ? 0 : found->second;
}

std::optional<ConnectionTable::Id> ConnectionTable::evict_from(const std::string& address) {
  const Connections::value_type* oldest = nullptr;
  for (const auto& entry : m_connections) {
    const bool waits = entry.second.address == address && entry.second.waiting_since;
    if (waits && (oldest == nullptr || *entry.second.waiting_since < *oldest->second.waiting_since)) {
      oldest = &entry;
    }
  }
  if (oldest == nullptr) {
    return std::nullopt;
  }
  const Id id = oldest->first;
  remove(id);
  return id;
}

std::optional<ConnectionTable::Id> ConnectionTable::evict() {
  std::map<std::string, std::size_t> waiting;
  for (const auto& [id, entry] : m_connections) {
    waiting[entry.address] += entry.waiting_since ? 1 : 0;
  }
  const auto most = std::max_element(waiting.begin(), waiting.end(),
                                     [](const auto& one, const auto& other) { return one.second < other.second; });
  return most == waiting.end() ? std::nullopt : evict_from(std::string(most->first));
}

std::optional<ConnectionTable::Admitted> ConnectionTable::admit(const std::string& address, Clock::time_point now) {
  std::optional<Id> evicted;
  const bool address_full = count(address) >= m_limit_per_address;
  if (address_full || m_connections.size() >= m_limit) {
    evicted = address_full ? evict_from(address) : evict();
    if (!evicted) {
      return std::nullopt;
    }
  }
  const Id id = m_next++;
  m_connections.emplace(id, Entry{address, now});
  ++m_by_address[address];
  return Admitted{id, evicted};
}

bool ConnectionTable::begin_request(Id id) {
  const auto found = m_connections.find(id);
  if (found != m_connections.end()) {
    found->second.waiting_since.reset();
  }
  return found != m_connections.end();
}

void ConnectionTable::end_request(Id id, Clock::time_point now) {
  if (const auto found = m_connections.find(id); found != m_connections.end()) {
    found->second.waiting_since = now;
  }
}

void ConnectionTable::remove(Id id) {
  const auto found = m_connections.find(id);
  if (found == m_connections.end()) {
    return;
  }
  if (const auto address = m_by_address.find(found->second.address); --address->second == 0) {
    m_by_address.erase(address);
  }
  m_connections.erase(found);
}

std::string address_group(const std::string& address) {
  in6_addr parsed{};
  if (::inet_pton(AF_INET6, address.c_str(), &parsed) != 1 || IN6_IS_ADDR_V4MAPPED(&parsed)) {
    return address;
  }
  std::fill(std::begin(parsed.s6_addr) + 8, std::end(parsed.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &parsed, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

}  // namespace dockbridge::mcp::http
