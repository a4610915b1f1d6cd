#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::mcp::http {

/// A host and, if there is one, a port, in lower case: "localhost", "localhost:8080", "[::1]:8080".
struct Authority {
  std::string host;
  std::string port{};  ///< 1 to 65535; empty: none

  [[nodiscard]] std::string text() const { return port.empty() ? host : host + ":" + port; }
};

// Both are strict: what a lenient parser could read in another way is nullopt.

/// A Host header: a name, an IPv4 address or an IPv6 address in brackets, and a port. No user, no path.
std::optional<Authority> parse_authority(std::string_view text);
/// An Origin header in its normal form, without a port that the scheme has anyway: "https://app.example". No user,
/// path, query or fragment.
std::optional<std::string> parse_origin(std::string_view text);

/// The names under which this server may be called and the pages that may call it: the local ones and those given.
class Origins {
 public:
  /// Hosts with or without a port; origins may also be "null". What is neither is never matched.
  Origins(const std::vector<std::string>& hosts, const std::vector<std::string>& origins);
  [[nodiscard]] bool allows_host(std::string_view host) const;
  /// A page that one of the hosts serves over HTTP or HTTPS, or one of the origins.
  [[nodiscard]] bool allows_origin(std::string_view origin) const;

 private:
  [[nodiscard]] bool allows(const Authority& authority) const;

  std::set<std::string> m_hosts;
  std::set<std::string> m_origins;
};

}  // namespace dockbridge::mcp::http
