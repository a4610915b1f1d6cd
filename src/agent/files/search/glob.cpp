#include "agent/files/search/glob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cwctype>
#include <utility>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_pattern_bytes = 4096;
constexpr std::size_t k_max_alternatives = 1000;
constexpr std::size_t k_max_sets = 250;
constexpr int k_max_brace_depth = 32;

tl::unexpected<Error> bad_glob(std::string_view pattern, std::string_view reason) {
  return fail(ErrorCode::bad_glob, fmt::format("Not a glob: '{}': {}", pattern, reason));
}

bool is_of_class(std::string_view name, int byte, bool& known) {
  const std::wctype_t type = std::wctype(std::string(name).c_str());
  known = type != 0;
  return known && byte < 128 && std::iswctype(static_cast<std::wint_t>(byte), type) != 0;
}

/// Expands a pattern with braces into all its alternatives.
class BraceExpansion {
 public:
  explicit BraceExpansion(std::string_view pattern) : m_pattern(pattern) {}

  Result<std::vector<std::string>> all() {
    auto expanded = sequence(0);
    if (expanded && m_at < m_pattern.size()) {
      return bad_glob(m_pattern, "} without {");
    }
    return expanded;
  }

 private:
  /// Expands up to the end of the pattern or, at depth > 0, up to the comma or brace that ends the alternative.
  Result<std::vector<std::string>> sequence(int depth) {
    if (depth > k_max_brace_depth) {
      return bad_glob(m_pattern, fmt::format("braces are nested more than {} deep", k_max_brace_depth));
    }
    std::vector<std::string> so_far = {""};
    while (m_at < m_pattern.size()) {
      const char c = m_pattern[m_at];
      if (c == '}' || (c == ',' && depth > 0)) {
        return so_far;
      }
      if (c == '{') {
        auto alternatives = braces(depth + 1);
        if (!alternatives) {
          return alternatives;
        }
        if (so_far.size() * alternatives->size() > k_max_alternatives) {
          return bad_glob(m_pattern, fmt::format("it has more than {} alternatives", k_max_alternatives));
        }
        std::vector<std::string> combined;
        for (const std::string& before : so_far) {
          for (const std::string& alternative : *alternatives) {
            combined.push_back(before + alternative);
          }
        }
        so_far = std::move(combined);
        continue;
      }
      const std::size_t length = plain_length();
      for (std::string& text : so_far) {
        text += m_pattern.substr(m_at, length);
      }
      m_at += length;
    }
    return so_far;
  }

  Result<std::vector<std::string>> braces(int depth) {
    std::vector<std::string> alternatives;
    do {
      ++m_at;  // the brace or the comma
      auto alternative = sequence(depth);
      if (!alternative) {
        return alternative;
      }
      if (m_at == m_pattern.size()) {
        return bad_glob(m_pattern, "{ is not closed");
      }
      std::move(alternative->begin(), alternative->end(), std::back_inserter(alternatives));
      if (alternatives.size() > k_max_alternatives) {
        return bad_glob(m_pattern, fmt::format("it has more than {} alternatives", k_max_alternatives));
      }
    } while (m_pattern[m_at] == ',');
    ++m_at;
    return alternatives;
  }

  /// Length of the next unit: an escape, a set in brackets, or one byte.
  [[nodiscard]] std::size_t plain_length() const {
    const std::string_view rest = m_pattern.substr(m_at);
    if (rest[0] == '\\') {
      return std::min<std::size_t>(2, rest.size());
    }
    if (rest[0] == '[') {
      std::size_t at = 1;
      if (at < rest.size() && (rest[at] == '!' || rest[at] == '^')) {
        ++at;
      }
      for (bool first = true; at < rest.size(); first = false) {
        if (rest[at] == ']' && !first) {
          return at + 1;
        }
        at += rest[at] == '\\' ? 2 : 1;
      }
    }
    return 1;
  }

  std::string_view m_pattern;
  std::size_t m_at = 0;
};

}  // namespace

Result<Wildcard> Wildcard::compile(std::string_view pattern) {
  Wildcard wildcard;
  auto& tokens = wildcard.m_tokens;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c == '*') {
      const std::size_t end = std::min(pattern.find_first_not_of('*', at), pattern.size());
      const bool begins = at == 0 || pattern[at - 1] == '/';
      if (end - at >= 2 && begins && end < pattern.size() && pattern[end] == '/') {
        tokens.push_back({Kind::directories});
        at = end + 1;
      } else {
        tokens.push_back({end - at >= 2 && begins && end == pattern.size() ? Kind::rest : Kind::star});
        at = end;
      }
    } else if (c == '?') {
      tokens.push_back({Kind::any});
      ++at;
    } else if (c == '[') {
      const auto end = wildcard.parse_set(pattern, at);
      if (!end) {
        return fail(end.error());
      }
      at = *end;
    } else {
      if (c == '\\' && ++at == pattern.size()) {
        return bad_glob(pattern, "it ends with a backslash");
      }
      tokens.push_back({Kind::byte, static_cast<std::uint8_t>(pattern[at++])});
    }
  }
  wildcard.find_shape();
  return wildcard;
}

Result<std::size_t> Wildcard::parse_set(std::string_view pattern, std::size_t at) {
  std::bitset<256> set;
  ++at;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) {
    ++at;
  }
  const auto byte_at = [&](std::size_t& position) {
    if (pattern[position] == '\\' && position + 1 < pattern.size()) {
      ++position;
    }
    return static_cast<unsigned char>(pattern[position++]);
  };
  for (bool first = true; at < pattern.size(); first = false) {
    if (pattern[at] == ']' && !first) {
      if (negated) {
        set.flip();
      }
      set.reset('/');
      if (m_sets.size() == k_max_sets) {
        return bad_glob(pattern, "it has too many [sets]");
      }
      m_tokens.push_back({Kind::set, static_cast<std::uint8_t>(m_sets.size())});
      m_sets.push_back(set);
      return at + 1;
    }
    if (pattern.substr(at, 2) == "[:") {
      if (const std::size_t end = pattern.find(":]", at + 2); end != std::string_view::npos) {
        const std::string_view name = pattern.substr(at + 2, end - at - 2);
        bool known = true;
        for (int byte = 0; byte < 256 && known; ++byte) {
          if (is_of_class(name, byte, known)) {
            set.set(static_cast<std::size_t>(byte));
          }
        }
        if (!known) {
          return bad_glob(pattern, fmt::format("[:{}:] is not a class of characters", name));
        }
        at = end + 2;
        continue;
      }
    }
    const unsigned char from = byte_at(at);
    unsigned char to = from;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      to = byte_at(++at);
    }
    if (to < from) {
      return bad_glob(pattern, fmt::format("the range {}-{} is empty", static_cast<char>(from), static_cast<char>(to)));
    }
    for (unsigned byte = from; byte <= to; ++byte) {
      set.set(byte);
    }
  }
  return bad_glob(pattern, "[ is not closed");
}

void Wildcard::find_shape() {
  std::size_t stars = 0;
  for (const Token token : m_tokens) {
    if (token.kind == Kind::star) {
      ++stars;
    } else if (token.kind != Kind::byte) {
      return;
    } else {
      m_literal += static_cast<char>(token.value);
    }
  }
  if (stars == 0) {
    m_shape = Shape::literal;
  } else if (stars == 1 && m_tokens.front().kind == Kind::star) {
    m_shape = Shape::suffix;
  } else if (stars == 1 && m_tokens.back().kind == Kind::star) {
    m_shape = Shape::prefix;
  } else {
    return;
  }
  m_tokens = {};
}

bool Wildcard::matches(std::string_view text) const {
  switch (m_shape) {
    case Shape::literal:
      return text == m_literal;
    case Shape::prefix:
      return text.starts_with(m_literal) && text.find('/', m_literal.size()) == std::string_view::npos;
    case Shape::suffix:
      return text.ends_with(m_literal) &&
             text.substr(0, text.size() - m_literal.size()).find('/') == std::string_view::npos;
    case Shape::general:
      return matches_general(text);
  }
  return false;
}

bool Wildcard::fits(Token token, unsigned char byte) const {
  switch (token.kind) {
    case Kind::byte:
      return token.value == byte;
    case Kind::any:
      return byte != '/';
    case Kind::set:
      return m_sets[token.value].test(byte);
    default:
      return false;
  }
}

bool Wildcard::matches_general(std::string_view text) const {
  constexpr std::size_t k_none = std::string_view::npos;
  std::size_t at = 0;
  std::size_t next = 0;  // index of a token
  // Positions to resume from after a mismatch. The last of each kind is enough: an earlier one cannot match more.
  std::size_t star = k_none;
  std::size_t star_at = 0;
  std::size_t directories = k_none;
  std::size_t directories_at = 0;
  while (true) {
    if (next < m_tokens.size()) {
      const Token token = m_tokens[next];
      if (token.kind == Kind::star) {
        star = ++next;
        star_at = at;
        continue;
      }
      if (token.kind == Kind::directories) {
        directories = ++next;
        directories_at = at;
        star = k_none;
        continue;
      }
      if (token.kind == Kind::rest) {
        return at < text.size();
      }
      if (at < text.size() && fits(token, static_cast<unsigned char>(text[at]))) {
        if (text[at] == '/') {
          star = k_none;
        }
        ++at;
        ++next;
        continue;
      }
    } else if (at == text.size()) {
      return true;
    }
    if (star != k_none && star_at < text.size() && text[star_at] != '/') {
      at = ++star_at;
      next = star;
    } else if (directories != k_none) {
      const std::size_t slash = text.find('/', directories_at);
      if (slash == k_none) {
        return false;
      }
      at = directories_at = slash + 1;
      next = directories;
      star = k_none;
    } else {
      return false;
    }
  }
}

Result<Glob> Glob::compile(std::string_view pattern) {
  if (pattern.empty()) {
    return bad_glob(pattern, "it is empty");
  }
  if (pattern.size() > k_max_pattern_bytes) {
    return bad_glob(pattern.substr(0, 100), fmt::format("it is longer than {} bytes", k_max_pattern_bytes));
  }
  if (pattern.find('\0') != std::string_view::npos) {
    return bad_glob(pattern.substr(0, pattern.find('\0')), "it has a NUL byte, which no name has");
  }
  const auto expanded = BraceExpansion(pattern).all();
  if (!expanded) {
    return fail(expanded.error());
  }
  Glob glob;
  for (std::string one : *expanded) {
    while (one.starts_with("./")) {
      one.erase(0, 2);
    }
    if (one == ".." || one.starts_with("../") || one.find("/../") != std::string::npos || one.ends_with("/..")) {
      return bad_glob(pattern, "it goes up with ..");
    }
    if (one.size() > 1 && one.ends_with('/')) {
      if (one.find('/') == one.size() - 1) {
        one.insert(0, "**/");
      }
      one += "**";
    }
    if (one.starts_with("**/") && one.find('/', 3) == std::string::npos) {
      one.erase(0, 3);
    }
    const bool is_path = one.find('/') != std::string::npos;
    const std::string_view anchored = one;
    auto wildcard = Wildcard::compile(one.starts_with('/') ? anchored.substr(1) : anchored);
    if (!wildcard) {
      return fail(wildcard.error());
    }
    (is_path ? glob.m_paths : glob.m_names).push_back(std::move(*wildcard));
  }
  return glob;
}

Result<std::vector<Glob>> Glob::compile_all(const std::vector<std::string>& patterns) {
  std::vector<Glob> globs;
  for (const std::string& pattern : patterns) {
    auto glob = compile(pattern);
    if (!glob) {
      return fail(glob.error());
    }
    globs.push_back(std::move(*glob));
  }
  return globs;
}

bool Glob::matches(std::string_view path) const {
  const std::string_view name = base_name(path);
  return std::any_of(m_names.begin(), m_names.end(), [&](const Wildcard& one) { return one.matches(name); }) ||
         std::any_of(m_paths.begin(), m_paths.end(), [&](const Wildcard& one) { return one.matches(path); });
}

bool any_matches(const std::vector<Glob>& globs, std::string_view path) {
  return std::any_of(globs.begin(), globs.end(), [&](const Glob& glob) { return glob.matches(path); });
}

}  // namespace dockbridge::agent
