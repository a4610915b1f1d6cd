#include "mcp/transport/http/access.hpp"

#include <algorithm>
#include <cctype>

#include "util/encoding.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr int k_failures_allowed = 10;
constexpr seconds k_failure_window{60};
constexpr std::size_t k_max_addresses = 10'000;
constexpr std::string_view k_scheme = "bearer ";

/// The secret in an Authorization header; nullopt if the scheme is not Bearer.
std::optional<std::string_view> bearer_of(std::string_view header) {
  const bool bearer = header.size() > k_scheme.size() &&
                      std::equal(k_scheme.begin(), k_scheme.end(), header.begin(),
                                 [](char wanted, unsigned char given) { return wanted == std::tolower(given); });
  if (!bearer) {
    return std::nullopt;
  }
  header.remove_prefix(std::min(header.find_first_not_of(" \t", k_scheme.size()), header.size()));
  return header;
}

}  // namespace

/// Compares with all tokens, so that the time does not reveal which one matches.
const Token* Access::find(std::string_view secret) const {
  const Token* found = nullptr;
  for (const Token& token : m_tokens) {
    found = equal_in_constant_time(token.secret, secret) ? &token : found;
  }
  return found;
}

tl::expected<Caller, Access::Refused> Access::admit(const std::optional<std::string>& authorization,
                                                    const std::string& address, Clock::time_point now) {
  if (open()) {
    return Caller{};
  }
  const auto secret = bearer_of(authorization ? std::string_view(*authorization) : std::string_view());
  if (const Token* token = secret ? find(*secret) : nullptr) {
    return Caller{token->name, token->tools};
  }
  if (secret && !note_failure(address, now)) {
    return tl::unexpected<Refused>({429, k_failure_window});
  }
  return tl::unexpected<Refused>({401, std::nullopt});
}

bool Access::note_failure(const std::string& address, Clock::time_point now) {
  const MutexLock lock(m_mutex);
  if (m_failures.size() >= k_max_addresses) {
    std::erase_if(m_failures, [&](const auto& entry) { return now - entry.second.since > k_failure_window; });
  }
  if (m_failures.size() >= k_max_addresses && !m_failures.contains(address)) {
    return true;
  }
  Failures& failures = m_failures[address];
  if (failures.count == 0 || now - failures.since > k_failure_window) {
    failures = {0, now};
  }
  failures.count = std::min(failures.count + 1, k_failures_allowed + 1);
  return failures.count <= k_failures_allowed;
}

}  // namespace dockbridge::mcp::http
