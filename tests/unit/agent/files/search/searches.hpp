#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "agent/files/search/search.hpp"
#include "unit/agent/files/search/tree.hpp"

namespace dockbridge::test {

using agent::SearchResult;
using Output = wire::GrepOutput;
using SearchRequest = wire::FileGrepRequest;

inline SearchRequest request(const std::string& pattern) {
  SearchRequest one;
  one.pattern = pattern;
  return one;
}

inline SearchResult found(int fd, const SearchRequest& one, std::size_t max_line_bytes = 500) {
  auto result = agent::search(fd, one, -1, max_line_bytes);
  REQUIRE_MESSAGE(result, one.pattern);
  return std::move(*result);
}

/// Formats a result: "path:number:text" for a match, "path-number-text" for context, "path:count" without lines.
inline std::string shown(const SearchResult& result) {
  std::string text;
  for (const agent::FoundFile& file : result.files) {
    if (file.lines.empty()) {
      text += fmt::format("{}:{}\n", file.path, file.matches);
    }
    for (const agent::FoundLine& line : file.lines) {
      const char mark = line.matches ? ':' : '-';
      text += fmt::format("{}{}{}{}{}\n", file.path, mark, line.number, mark, line.text);
    }
  }
  return text;
}

inline std::string grep(const Tree& tree, const SearchRequest& one) {
  return shown(found(tree.fd(), one));
}

inline std::string grep_text(const std::string& content, const SearchRequest& one) {
  const Tree tree;
  tree.put("f", content);
  return grep(tree, one);
}

}  // namespace dockbridge::test
