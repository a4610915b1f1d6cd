#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::mcp::http {

/// A host and an optional port, in lower case: "localhost", "localhost:8080", "[::1]:8080".
struct Authority {
  std::string host;
  std::string port{};  ///< 1 to 65535; empty if none

  [[nodiscard]] std::string text() const { return port.empty() ? host : host + ":" + port; }
};

// Both parsers are strict: they return nullopt for text that a lenient parser could read in another way.

/// Parses a Host header: a name, an IPv4 address or an IPv6 address in brackets, and an optional port. No user, no
/// path.
std::optional<Authority> parse_authority(std::string_view text);
/// Parses an Origin header into its normal form, without the scheme's default port: "https://app.example". No user,
/// path, query or fragment.
std::optional<std::string> parse_origin(std::string_view text);

/// The Host names that this server accepts and the origins that may call it: local ones and configured ones.
class Origins {
 public:
  /// Hosts with or without a port; origins may also be "null". Invalid entries never match.
  Origins(const std::vector<std::string>& hosts, const std::vector<std::string>& origins);
  [[nodiscard]] bool allows_host(std::string_view host) const;
  /// Accepts an HTTP or HTTPS origin on one of the hosts, or one of the configured origins.
  [[nodiscard]] bool allows_origin(std::string_view origin) const;

 private:
  [[nodiscard]] bool allows(const Authority& authority) const;

  std::set<std::string> m_hosts;
  std::set<std::string> m_origins;
};

}  // namespace dockbridge::mcp::http
