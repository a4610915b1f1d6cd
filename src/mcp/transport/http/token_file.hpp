#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "util/error.hpp"

namespace dockbridge::mcp::http {

/// Secrets with fewer characters are accepted with a warning: they may be guessed.
inline constexpr std::size_t k_safe_secret_length = 32;

/// Who holds a token, and what it is good for.
struct Token {
  std::string name;  ///< the owner of everything that is made with it
  std::string secret;
  std::optional<std::set<std::string>> tools{};  ///< none: all
  std::string container{};                       ///< empty: the server's
};

// Errors name the entry that is wrong, never its secret.

/// The text of a token file: one secret on a line of its own, or JSON such as
/// {"tokens": [{"name": "ci", "token": "…", "tools": ["execute_command"], "container": "mcp-container"}]}.
/// Two entries may have the same name, for example while a secret is replaced, if they allow the same.
Result<std::vector<Token>> parse_tokens(const std::string& text, const std::string& source);
/// A regular file of this user or root that nobody else can read.
Result<std::vector<Token>> read_token_file(const std::string& path);
/// Makes a secret and stores it where only this user can read it; an existing file is read.
Result<std::vector<Token>> token_file_or_new(const std::string& path);

}  // namespace dockbridge::mcp::http
