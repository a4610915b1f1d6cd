#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"
#include "mcp/peer.hpp"
#include "mcp/transport/http/token_file.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp::http {

/// Authenticates requests. A valid token is always admitted. It is looked up before anything else, so wrong tokens from
/// the same address, such as that of a proxy, cannot lock it out. Secrets are too long to be guessed, so throttling
/// only limits the cost of wrong tokens. Any thread may call.
///
/// Other kinds of authentication belong here. An OAuth resource server would check the signature of a JWT where `admit`
/// compares secrets, and fill the same `Caller`.
class Access {
 public:
  /// Without tokens every request is admitted, as "local".
  explicit Access(std::vector<Token> tokens) : m_tokens(std::move(tokens)) {}

  [[nodiscard]] bool open() const { return m_tokens.empty(); }

  struct Refused {
    int status;  ///< 401, or 429 after too many failures
    std::optional<seconds> retry_after{};
  };
  /// `authorization`: the header. `address`: the one whose failures are counted.
  tl::expected<Caller, Refused> admit(const std::optional<std::string>& authorization, const std::string& address,
                                      Clock::time_point now);

 private:
  struct Failures {
    int count = 0;
    Clock::time_point since{};
  };
  [[nodiscard]] const Token* find(std::string_view secret) const;
  /// Counts a wrong token. False if the address has exceeded the limit.
  bool note_failure(const std::string& address, Clock::time_point now);

  const std::vector<Token> m_tokens;
  Mutex m_mutex;
  std::map<std::string, Failures> m_failures GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp::http
