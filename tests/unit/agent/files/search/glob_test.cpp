#include "agent/files/search/glob.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dockbridge;
using agent::Glob;

namespace {

bool matches(const std::string& pattern, const std::string& path) {
  const auto glob = Glob::compile(pattern);
  REQUIRE_MESSAGE(glob, pattern);
  return glob->matches(path);
}

}  // namespace

TEST_CASE("glob: matches names and paths") {
  struct Case {
    const char* pattern;
    std::vector<std::string> yes;
    std::vector<std::string> no;
  };
  const std::vector<Case> cases = {
      {"*.c", {"a.c", "src/a.c", "src/deep/.c"}, {"a.cc", "a.c/b", "ac"}},
      {"a", {"a", "x/a"}, {"a/x", "ab", "ba"}},
      {"a*", {"a", "ab", "x/abc"}, {"ba", "ab/c"}},
      {"a*b*c", {"abc", "axxbyyc", "abcbc"}, {"abx", "acb"}},
      {"?.c", {"a.c"}, {".c", "ab.c"}},
      {"a?c",
       {"abc",
        "a\xff"
        "c"},
       {"ac", "a/c"}},
      {"[a-c]x", {"ax", "cx"}, {"dx", "x", "-x"}},
      {"[!a]x", {"bx", "d/cx"}, {"ax", "x"}},
      {"[^a]x", {"bx"}, {"ax"}},
      {"[]a]", {"]", "a"}, {"b"}},
      {"[a-]", {"a", "-"}, {"b"}},
      {"[[:digit:]_]x", {"1x", "_x"}, {"ax"}},
      {"[\\]x]y", {"]y", "xy"}, {"\\y"}},
      {"src/*.c", {"src/a.c"}, {"a.c", "src/x/a.c", "x/src/a.c"}},
      {"/a.c", {"a.c"}, {"src/a.c"}},
      {"./a/b", {"a/b"}, {"b", "x/a/b"}},
      {"**/a.c", {"a.c", "x/a.c", "x/y/a.c"}, {"x/ba.c"}},
      {"src/**", {"src/a", "src/a/b"}, {"src", "x/src/a"}},
      {"src/**/x", {"src/x", "src/a/x", "src/a/b/x"}, {"src/ax", "x"}},
      {"**/src/**/x", {"src/x", "a/src/b/x"}, {"a/x"}},
      {"a/**/b/**/c", {"a/b/c", "a/x/b/y/z/c", "a/b/b/c"}, {"a/c", "a/b/x"}},
      {"a**b", {"ab", "axxb"}, {"a/b"}},
      {"x/a**b", {"x/ab", "x/acb"}, {"x/a/b"}},
      {"**", {"a", "a/b"}, {}},
      {"/**", {"a", "a/b"}, {}},
      {"src/", {"src/a", "src/a/b", "x/src/a"}, {"src", "xsrc/a"}},
      {"a/b/", {"a/b/c"}, {"a/b", "x/a/b/c"}},
      {"*.{h,hpp}", {"a.h", "x/a.hpp"}, {"a.hp", "a.{h,hpp}"}},
      {"{a,b{c,d}}.x", {"a.x", "bc.x", "bd.x"}, {"b.x", "c.x"}},
      {"{src,test}/**/*.c", {"src/a.c", "test/x/a.c"}, {"a.c", "lib/a.c"}},
      {"{*.c,src/*.h}", {"x/a.c", "src/a.h"}, {"x/a.h"}},
      {"a{,b}", {"a", "ab"}, {"b"}},
      {"a,b", {"a,b"}, {"a"}},
      {"\\*", {"*"}, {"a"}},
      {"\\{a\\}", {"{a}"}, {"a"}},
      {"[{]a", {"{a"}, {"a"}},
      {"-x*", {"-x", "-xy"}, {"x"}},
      {"a\nb", {"a\nb"}, {"a", "b"}},
      {"\xff*", {"\xff\xfe"}, {"\xfe"}},
  };
  for (const Case& one : cases) {
    for (const std::string& path : one.yes) {
      CHECK_MESSAGE(matches(one.pattern, path), one.pattern << " should match " << path);
    }
    for (const std::string& path : one.no) {
      CHECK_MESSAGE(!matches(one.pattern, path), one.pattern << " should not match " << path);
    }
  }
}

TEST_CASE("glob: an invalid pattern is rejected with the reason") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty"},
      {"[a", "[ is not closed"},
      {"[]", "[ is not closed"},
      {"[!", "[ is not closed"},
      {"{a,b", "{ is not closed"},
      {"a}", "} without {"},
      {"{a}}", "} without {"},
      {"a\\", "ends with a backslash"},
      {"[z-a]", "range z-a is empty"},
      {"[[:nope:]]", "[:nope:] is not a class"},
      {"../x", "goes up"},
      {"a/../x", "goes up"},
      {std::string("a\0b", 3), "NUL"},
      {std::string(5000, 'a'), "longer than"},
      {std::string(40, '{') + std::string(40, '}'), "nested"},
      {"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "more than 1000 alternatives"},
  };
  for (const auto& [pattern, reason] : cases) {
    const auto glob = Glob::compile(pattern);
    REQUIRE_MESSAGE(!glob, pattern);
    CHECK(glob.error().code == ErrorCode::bad_glob);
    CHECK_MESSAGE(glob.error().message.find(reason) != std::string::npos, glob.error().message);
  }
}

TEST_CASE("glob: no pattern takes exponential time") {
  std::string stars;
  std::string directories;
  for (int i = 0; i < 100; ++i) {
    stars += "*a";
    directories += "**/a*/";
  }
  CHECK_FALSE(matches(stars + "b", std::string(250, 'a')));
  std::string path;
  for (int i = 0; i < 1000; ++i) {
    path += "aa/";
  }
  CHECK_FALSE(matches(directories + "b", path + "c"));
}
