#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "util/clock.hpp"

namespace dockbridge::mcp::http {

/// Decides which connections are kept. One that waits for the head of a request makes room for a new one, so that idle
/// connections lock nobody out; one whose request is served is never closed. An unauthenticated client cannot make its
/// connections look busy: a request counts from the end of its head until its response, and without a token that comes
/// at once.
///
/// Each address has a limit, so that one cannot displace another's connections. It is half of all rather than less, as
/// all local clients and everything behind a reverse proxy share one address. Not safe to share between threads.
class ConnectionTable {
 public:
  using Id = std::uint64_t;

  ConnectionTable(std::size_t limit, std::size_t limit_per_address)
      : m_limit(limit), m_limit_per_address(limit_per_address) {}

  struct Admitted {
    Id id;
    std::optional<Id> evicted{};  ///< to be closed; it is not in the table any more
  };
  /// nullopt if every connection that could make room is serving a request.
  std::optional<Admitted> admit(const std::string& address, Clock::time_point now);
  /// Drops the connection that has waited longest of the address with the most; nullopt if none waits.
  std::optional<Id> evict();
  /// False if the connection was evicted meanwhile.
  bool begin_request(Id id);
  void end_request(Id id, Clock::time_point now);
  void remove(Id id);
  [[nodiscard]] std::size_t size() const { return m_connections.size(); }

 private:
  struct Entry {
    std::string address;
    std::optional<Clock::time_point> waiting_since;  ///< nullopt while a request is served
  };
  using Connections = std::map<Id, Entry>;

  std::optional<Id> evict_from(const std::string& address);
  [[nodiscard]] std::size_t count(const std::string& address) const;

  const std::size_t m_limit;
  const std::size_t m_limit_per_address;
  Id m_next = 1;
  Connections m_connections;
  std::map<std::string, std::size_t> m_by_address;  // only addresses with a connection
};

/// The address that a limit applies to: an IPv6 client has a whole /64 of addresses.
std::string address_group(const std::string& address);

}  // namespace dockbridge::mcp::http
