#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::mcp::http {

/// Shorter secrets are accepted with a warning, because they may be guessed.
inline constexpr std::size_t k_safe_secret_length = 32;

/// A bearer token and its rights.
struct Token {
  std::string name;  ///< the owner of all sessions, processes and tasks created with it
  std::string secret;
  std::optional<std::set<std::string>> tools{};  ///< nullopt means all tools
  std::string container{};                       ///< empty means the server's container
};

// Errors name the wrong entry, but never its secret.

/// Parses a token file: one secret on a line of its own, or JSON such as
/// {"tokens": [{"name": "ci", "token": "…", "tools": ["execute_command"], "container": "mcp-container"}]}.
/// Two entries may have the same name if they have the same rights, for example while a secret is replaced.
Result<std::vector<Token>> parse_tokens(const std::string& text, const std::string& source);
/// Reads a token file. It must be a regular file that belongs to this user or root and that no other user can read.
Result<std::vector<Token>> read_token_file(const std::string& path);
/// Reads an existing file, or creates one with a new secret that only this user can read.
Result<std::vector<Token>> token_file_or_new(const std::string& path);

}  // namespace dockbridge::mcp::http
