#include "mcp/transport/http/origins.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace dockbridge::mcp::http {

namespace {

constexpr std::size_t k_max_host_length = 253;
constexpr std::string_view k_null = "null";  // the origin of a page without an origin of its own, such as a local file

bool is_letter_or_digit(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= k_max_host_length &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

bool is_scheme(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return is_letter_or_digit(c) || c == '+' || c == '-' || c == '.'; });
}

/// Digits without a leading zero.
bool is_port(std::string_view text) {
  unsigned int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && text.front() != '0' && read.ec == std::errc() && read.ptr == text.data() + text.size() &&
         number <= 65535;
}

/// Canonical form of an IPv6 address, with brackets; nullopt if it is not an IPv6 address.
std::optional<std::string> normal_ipv6(const std::string& text) {
  in6_addr address{};
  std::array<char, INET6_ADDRSTRLEN> normal{};
  if (::inet_pton(AF_INET6, text.c_str(), &address) != 1 ||
      ::inet_ntop(AF_INET6, &address, normal.data(), normal.size()) == nullptr) {
    return std::nullopt;
  }
  return std::string("[") + normal.data() + "]";
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) {
  const std::string given = lower(text);
  if (given.find('\0') != std::string::npos) {
    return std::nullopt;
  }
  std::size_t end = given.find(':');
  Authority authority;
  if (given.starts_with('[')) {
    const std::size_t bracket = given.find(']');
    const auto address = bracket == std::string::npos ? std::nullopt : normal_ipv6(given.substr(1, bracket - 1));
    if (!address) {
      return std::nullopt;
    }
    authority.host = *address;
    end = bracket + 1;
  } else {
    authority.host = given.substr(0, end);
    if (!is_name(authority.host)) {
      return std::nullopt;
    }
  }
  if (end < given.size()) {
    authority.port = given.substr(end + 1);
    if (given[end] != ':' || !is_port(authority.port)) {
      return std::nullopt;
    }
  }
  return authority;
}

std::optional<std::string> parse_origin(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string scheme = lower(text.substr(0, colon));
  auto authority = parse_authority(text.substr(colon + 3));
  if (!is_scheme(scheme) || !authority) {
    return std::nullopt;
  }
  if ((scheme == "http" && authority->port == "80") || (scheme == "https" && authority->port == "443")) {
    authority->port.clear();
  }
  return scheme + "://" + authority->text();
}

Origins::Origins(const std::vector<std::string>& hosts, const std::vector<std::string>& origins)
    : m_hosts{"localhost", "127.0.0.1", "[::1]"} {
  for (const std::string& host : hosts) {
    if (const auto address = normal_ipv6(host)) {  // without brackets, as for --http
      m_hosts.insert(*address);
    } else if (const auto authority = parse_authority(host)) {
      m_hosts.insert(authority->text());
    }
  }
  for (const std::string& origin : origins) {
    if (const auto normal = parse_origin(origin)) {
      m_origins.insert(*normal);
    } else if (lower(origin) == k_null) {
      m_origins.insert(std::string(k_null));
    }
  }
}

bool Origins::allows(const Authority& authority) const {
  return m_hosts.contains(authority.host) || m_hosts.contains(authority.text());
}

bool Origins::allows_host(std::string_view host) const {
  const auto authority = parse_authority(host);
  return authority && allows(*authority);
}

bool Origins::allows_origin(std::string_view origin) const {
  if (origin == k_null) {
    return m_origins.contains(std::string(k_null));
  }
  const auto normal = parse_origin(origin);
  if (!normal || m_origins.contains(*normal)) {
    return normal.has_value();
  }
  const bool web = normal->starts_with("http://") || normal->starts_with("https://");
  const auto authority = parse_authority(std::string_view(*normal).substr(normal->find("://") + 3));
  return web && authority && allows(*authority);
}

}  // namespace dockbridge::mcp::http
