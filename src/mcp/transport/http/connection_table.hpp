#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "util/clock.hpp"

namespace dockbridge::mcp::http {

/// Decides which connections are kept. A connection that waits for the head of a request can be evicted for a new one,
/// so idle connections lock nobody out. A connection that serves a request is never evicted. An unauthenticated client
/// cannot keep its connections busy: a request counts from the end of its head until its response, and a request
/// without a token gets its response at once. The exceptions, /healthz and /readyz, are few at a time.
///
/// Each address has a limit, so that one address cannot take all connections. The limit is two thirds of them
/// rather than less, because all local clients and all clients behind a reverse proxy share one address.
/// Not thread-safe.
class ConnectionTable {
 public:
  using Id = std::uint64_t;

  ConnectionTable(std::size_t limit, std::size_t limit_per_address)
      : m_limit(limit), m_limit_per_address(limit_per_address) {}

  struct Admitted {
    Id id;
    std::optional<Id> evicted{};  ///< the caller closes this connection; it is no longer in the table
  };
  /// nullopt if every connection that could be evicted is serving a request.
  std::optional<Admitted> admit(const std::string& address, Clock::time_point now);
  /// Evicts the connection that has waited longest, from the address with the most connections; nullopt if none waits.
  std::optional<Id> evict();
  /// False if the connection was evicted before.
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

/// The address that a limit applies to. An IPv6 client counts by its /64, because it controls all addresses in it.
std::string address_group(const std::string& address);

}  // namespace dockbridge::mcp::http
