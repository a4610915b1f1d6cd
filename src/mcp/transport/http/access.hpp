#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/conversation.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"

namespace dockbridge::mcp::http {

/// Who holds a token, and what it is good for.
struct Token {
  std::string name;  ///< the owner of everything that is made with it
  std::string secret;
  std::optional<std::set<std::string>> tools{};  ///< none: all
  std::string container{};                       ///< empty: the server's
};

/// The text of a token file: one secret on a line of its own, or JSON such as
/// {"tokens": [{"name": "ci", "token": "…", "tools": ["execute_command"], "container": "mcp-container"}]}.
Result<std::vector<Token>> parse_tokens(const std::string& text, const std::string& source);
/// A file that nobody else can read; the error says how to make it so.
Result<std::vector<Token>> read_token_file(const std::string& path);
/// Makes a secret and stores it where only this user can read it; an existing file is read.
Result<std::vector<Token>> token_file_or_new(const std::string& path);

/// Decides who gets in. Any thread may call.
///
/// This is the seam for other ways to prove who one is: an OAuth resource server would check the signature of a JWT
/// where `admit` compares secrets, and fill the same `Caller`.
class Access {
 public:
  /// Without tokens everybody gets in, as "local".
  explicit Access(std::vector<Token> tokens) : m_tokens(std::move(tokens)) {}

  [[nodiscard]] bool open() const { return m_tokens.empty(); }

  struct Refused {
    int status;  ///< 401, or 429 after too many failures
    std::optional<seconds> retry_after{};
  };
  /// `authorization`: the header. `address`: whose failures are counted.
  tl::expected<Caller, Refused> admit(const std::optional<std::string>& authorization, const std::string& address);

 private:
  struct Failures {
    int count = 0;
    Clock::time_point since{};
  };
  [[nodiscard]] const Token* find(std::string_view secret) const;
  bool throttled(const std::string& address);
  void note_failure(const std::string& address);

  const std::vector<Token> m_tokens;
  std::mutex m_mutex;  // guards the failures
  std::map<std::string, Failures> m_failures;
};

/// The names under which this server may be called and the pages that may call it: the local ones and those given.
class Origins {
 public:
  Origins(std::vector<std::string> hosts, std::vector<std::string> origins);
  [[nodiscard]] bool allows_host(const std::string& host) const;
  [[nodiscard]] bool allows_origin(const std::string& origin) const;

 private:
  std::set<std::string> m_hosts;
  std::set<std::string> m_origins;
};

}  // namespace dockbridge::mcp::http
