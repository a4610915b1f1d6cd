#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::agent {

/// One pattern without braces, matched against a whole text. `*` and `?` match any bytes but `/`. `[a-z]`, `[!a]` and
/// `[[:alpha:]]` match one byte but `/`. A backslash quotes the next byte. `**` as a whole component matches any number
/// of components, also none; at the end, it matches everything beneath. It matches bytes, not characters, because names
/// need not be UTF-8. Immutable after compile. Matching is never exponential in time.
class Wildcard {
 public:
  /// Error `bad_glob` with the reason.
  static Result<Wildcard> compile(std::string_view pattern);

  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  enum class Shape : std::uint8_t { literal, prefix, suffix, general };
  enum class Kind : std::uint8_t { byte, any, set, star, directories, rest };
  struct Token {
    Kind kind;
    std::uint8_t value = 0;  // the byte, or the index of the set
  };

  Result<std::size_t> parse_set(std::string_view pattern, std::size_t at);
  void find_shape();
  [[nodiscard]] bool fits(Token token, unsigned char byte) const;
  [[nodiscard]] bool matches_general(std::string_view text) const;

  Shape m_shape = Shape::general;
  std::string m_literal;  // the pattern without its star; unused if the shape is general
  std::vector<Token> m_tokens;
  std::vector<std::bitset<256>> m_sets;
};

/// A glob as users write it: a Wildcard with `{a,b}` alternatives, which may be nested. Without a slash it matches the
/// last component of a path, with one the whole path. A slash at the end means everything beneath. Immutable after
/// compile, so any thread may use it.
class Glob {
 public:
  /// Error `bad_glob` with the reason.
  static Result<Glob> compile(std::string_view pattern);
  static Result<std::vector<Glob>> compile_all(const std::vector<std::string>& patterns);

  /// `path` is relative to the start of the walk, without a leading slash.
  [[nodiscard]] bool matches(std::string_view path) const;

 private:
  std::vector<Wildcard> m_names;
  std::vector<Wildcard> m_paths;
};

[[nodiscard]] bool any_matches(const std::vector<Glob>& globs, std::string_view path);

/// The last component of a path.
inline std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace dockbridge::agent
