#include "agent/files/search/required_literal.hpp"

#include <doctest/doctest.h>
#include <re2/re2.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace dockbridge;
using agent::required_literals;
using Texts = std::vector<std::string>;

TEST_CASE("required literal: the longest text of every match is found") {
  CHECK(required_literals("foo", false) == Texts{"foo"});
  CHECK(required_literals("foo.*barbaz", false) == Texts{"barbaz"});
  CHECK(required_literals("fo*ab", false) == Texts{"ab"});
  CHECK(required_literals("abcx?d", false) == Texts{"abc"});
  CHECK(required_literals("ab+c", false) == Texts{"ab"});
  CHECK(required_literals("abc{2,}", false) == Texts{"abc"});
  CHECK(required_literals("abc{0,3}d", false) == Texts{"ab"});
  CHECK(required_literals("a{b", false) == Texts{"a{b"});
  CHECK(required_literals(R"(std::\w+_ptr<)", false) == Texts{"std::"});
  CHECK(required_literals(R"(\.size\(\))", false) == Texts{".size()"});
  CHECK(required_literals("(foo|bar)bazz", false) == Texts{"bazz"});
  CHECK(required_literals("[xyz]abc[)]", false) == Texts{"abc"});
  CHECK(required_literals("one|two|three", false) == Texts{"one", "two", "three"});
  CHECK(required_literals("^namespace", true) == Texts{"name"});
  CHECK(required_literals("\xc3\xa4+b", false) == Texts{"\xc3\xa4"});
}

TEST_CASE("required literal: none is returned where none is certain") {
  for (const char* regex : {"", "a*", "a|b*", "a|", ".", "[abc]", "(?i)abc", "(?:a)(?i:b)c", R"(\Qa*\E)", R"(\x41b)",
                            R"(\pLab)", "a|b|c|d|e", R"(\Aab)"}) {
    CHECK_MESSAGE(required_literals(regex, false).empty(), regex);
  }
  CHECK(required_literals("ks", true).empty());
  CHECK(required_literals("\xc3\xa4", true).empty());
}

TEST_CASE("required literal: matches of random patterns contain their literals") {
  std::mt19937 random(7);
  const Texts pieces = {"a",    "b",           "K",    "s",    "ab",   ".",    "*",     "+",   "?",
                        "|",    "(",           ")",    "[ab]", "[^a]", "[]a]", "{0,2}", "{2}", "{1,}",
                        "\\.",  "\\w",         "\\b",  "^",    "$",    "(?:",  "{",     "x{",  "\xc3\xa4",
                        "(?i)", "[[:alpha:]]", "\\\\", "*?",   "\\Q",  "\\E",  "{,2}",  "}"};
  int known = 0;
  int matched = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string regex;
    for (std::size_t i = 1 + random() % 7; i > 0; --i) {
      regex += pieces[random() % pieces.size()];
    }
    const bool ignore_case = random() % 2 == 0;
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_case_sensitive(!ignore_case);
    const re2::RE2 compiled(regex, options);
    const Texts literals = compiled.ok() ? required_literals(regex, ignore_case) : Texts{};
    if (literals.empty()) {
      continue;
    }
    ++known;
    for (int attempt = 0; attempt < 20; ++attempt) {
      static const Texts letters = {"a", "A", "b",  "k",        "s", "\xc5\xbf", "\xe2\x84\xaa", ".", "x",
                                    "{", "}", "\\", "\xc3\xa4", ",", "2"};
      std::string text;
      for (std::size_t i = random() % 10; i > 0; --i) {
        text += letters[random() % letters.size()];
      }
      if (!re2::RE2::PartialMatch(text, compiled)) {
        continue;
      }
      ++matched;
      const auto lower = [&](std::string one) {
        std::transform(one.begin(), one.end(), one.begin(),
                       [&](char c) { return ignore_case && c >= 'A' && c <= 'Z' ? c + 32 : c; });
        return one;
      };
      const bool has_one = std::any_of(literals.begin(), literals.end(), [&](const std::string& literal) {
        return lower(text).find(lower(literal)) != std::string::npos;
      });
      CHECK_MESSAGE(has_one, regex << " matches " << text);
    }
  }
  CHECK(known > 1000);
  CHECK(matched > 1000);
}

TEST_CASE("required literal: a pattern that is a plain text is recognised") {
  CHECK(agent::whole_literal("abc") == "abc");
  CHECK(agent::whole_literal("a\\.b\\(\\)") == "a.b()");
  CHECK(agent::whole_literal("a}]") == "a}]");
  for (const char* regex : {"a.c", "a|b", "\\w", "a\\", "[a]", "a{2}", "^a", "a$", "(a)", "\\n"}) {
    CHECK_MESSAGE(agent::whole_literal(regex).empty(), regex);
  }
}
