#include "agent/files/search/ignore_rules.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdio>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "agent/files/search/tree_walk.hpp"
#include "unit/agent/files/search/tree.hpp"

using namespace dockbridge;
using agent::IgnoreFile;
using test::Tree;

namespace {

std::set<std::string> files_of(int start_fd, const agent::WalkOptions& options) {
  std::set<std::string> paths;
  std::mutex mutex;
  agent::walk_tree(start_fd, options, 2, [&](const agent::WalkEntry& entry) {
    if (entry.type != agent::FileType::directory) {
      const std::lock_guard lock(mutex);
      paths.emplace(entry.path);
    }
  });
  return paths;
}

/// Output of a command, split at NUL bytes.
std::set<std::string> names_from(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::set<std::string> names;
  std::string name;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != 0) {
      name += static_cast<char>(c);
    } else {
      names.insert(std::exchange(name, {}));
    }
  }
  REQUIRE(::pclose(pipe) == 0);
  return names;
}

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("ignore rules: each line means what it means to git") {
  struct Case {
    std::string rules;
    std::string path;  // a directory if it ends with a slash
    bool ignored;
  };
  const std::vector<Case> cases = {
      {"a", "a", true},
      {"a", "x/a", true},
      {"a", "a/", true},
      {"a/", "a", false},
      {"a/", "a/", true},
      {"a/", "x/a/", true},
      {"/a", "a", true},
      {"/a", "x/a", false},
      {"x/a", "x/a", true},
      {"x/a", "y/x/a", false},
      {"*.o", "x/y.o", true},
      {"*.o\n!y.o", "y.o", false},
      {"!y.o\n*.o", "y.o", true},
      {"# a\na", "a", true},
      {"#a", "#a", false},
      {"\\#a", "#a", true},
      {"\\!a", "!a", true},
      {"a  ", "a", true},
      {"a\\ ", "a ", true},
      {"a\\ ", "a", false},
      {"a\r\nb\r\n", "a", true},
      {"\n\n", "a", false},
      {"/", "a/", false},
      {"**/a", "a", true},
      {"**/a", "x/y/a", true},
      {"a/**", "a/b", true},
      {"a/**", "a/", false},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"x/*", "x/a", true},
      {"x/*", "x/y/a", false},
      {"[ab]", "b", true},
      {"[", "[", false},
      {"a\\", "a", false},
      {"{a,b}", "a", false},
      {"{a,b}", "{a,b}", true},
      {"\xef\xbb\xbf"
       "a",
       "a", true},
  };
  for (const Case& one : cases) {
    const bool is_directory = one.path.ends_with('/');
    const std::string path = is_directory ? one.path.substr(0, one.path.size() - 1) : one.path;
    const bool ignored = IgnoreFile(one.rules).judge(path, is_directory) == IgnoreFile::Verdict::ignored;
    CHECK_MESSAGE(ignored == one.ignored, "'" << one.rules << "' for " << one.path);
  }
}

TEST_CASE("ignore rules: deeper directories win, .ignore before .gitignore") {
  const Tree tree;
  tree.put(".gitignore", "*.log\nbuild/\n");
  tree.put(".ignore", "secret\n!kept.log\n");
  tree.put("a.log");
  tree.put("kept.log");
  tree.put("secret");
  tree.put("build/x");
  tree.put("src/.gitignore", "!b.log\n/only_here\n");
  tree.put("src/b.log");
  tree.put("src/only_here");
  tree.put("src/deep/only_here");
  CHECK(files_of(tree.fd(), {}) == Names{"kept.log", "src/b.log", "src/deep/only_here"});
  agent::WalkOptions all;
  all.honour_ignore = false;
  CHECK(files_of(tree.fd(), all).size() == 7);
}

TEST_CASE("ignore rules: rules above the start apply, up to the repository root") {
  const Tree tree;
  tree.put(".gitignore", "beyond\n");
  tree.put("repo/.git/info/exclude", "excluded\n");
  tree.put("repo/.gitignore", "*.o\n/src/lib/anchored\nlib2/\n");
  for (const char* name : {"a.o", "anchored", "excluded", "beyond", "kept"}) {
    tree.put("repo/src/lib/" + std::string(name));
  }
  const Fd start(::open(tree.path("repo/src/lib").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  CHECK(files_of(start.get(), {}) == Names{"beyond", "kept"});
  agent::WalkOptions confined;
  confined.top_fd = start.get();
  CHECK(files_of(start.get(), confined) == Names{"a.o", "anchored", "beyond", "excluded", "kept"});
}

TEST_CASE("ignore rules: a nested repository has only its own rules") {
  const Tree tree;
  tree.make_directory(".git");
  tree.put(".gitignore", "*.o\n");
  tree.put("inner/.git/config");
  tree.put("inner/a.o");
  tree.put("other/a.o");
  agent::WalkOptions options;
  options.hidden = true;
  CHECK(files_of(tree.fd(), options) == Names{".gitignore", "inner/a.o"});
}

TEST_CASE("ignore rules: oversized files are counted, links are not followed") {
  const Tree tree;
  tree.put(".gitignore", std::string(2'000'000, 'x'));
  std::string many;
  for (int i = 0; i < 100'000; ++i) {
    many += "a\n";
  }
  tree.put("many/.gitignore", many);
  tree.put("many/a");
  tree.put("elsewhere", "a\n");
  tree.make_directory("linked");
  tree.link("../elsewhere", "linked/.gitignore");
  tree.put("linked/a");
  agent::WalkOptions options;
  const auto totals = agent::walk_tree(tree.fd(), options, 1, [](const agent::WalkEntry&) {});
  CHECK(totals.ignore_files_left_out == 2);
  CHECK(files_of(tree.fd(), options) == Names{"elsewhere", "linked/a", "many/a"});
}

TEST_CASE("ignore rules: random trees give the same files as git") {
  std::mt19937 random(20240607);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  const std::vector<std::string> names = {"a", "b", "ab", "c.o", "d.o", "x y", "e.c", "#f", "-g"};
  const std::vector<std::string> pieces = {"a",  "b",   "ab",  "*.o", "*",  "?",   "[a-b]", "[!a]*",
                                           "**", "c.*", "d.o", "*b",  "a*", "e.c", "-g",    "\\#f"};
  int rules_that_matter = 0;
  for (int round = 0; round < 40; ++round) {
    const Tree tree;
    std::vector<std::string> directories = {""};
    for (int i = 0; i < 12; ++i) {
      const std::string directory = pick(directories) + pick({"a", "b", "ab", "x y"}) + "/";
      tree.make_directory(directory);
      directories.push_back(directory);
    }
    for (int i = 0; i < 60; ++i) {
      const std::string path = pick(directories) + pick(names);
      if (!std::filesystem::exists(tree.path(path))) {
        tree.put(path);
      }
    }
    for (int i = 0; i < 4; ++i) {
      std::string rules;
      for (int line = 0; line < 4; ++line) {
        rules += random() % 3 == 0 ? "!" : "";
        rules += random() % 4 == 0 ? "/" : "";
        rules += pick(pieces);
        for (unsigned more = random() % 3; more > 0; --more) {
          rules += "/" + pick(pieces);
        }
        rules += random() % 4 == 0 ? "/\n" : "\n";
      }
      tree.put((i == 0 ? "" : pick(directories)) + ".gitignore", rules);
    }
    const std::string git =
        "cd '" + tree.path("") + "' && GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git ";
    REQUIRE(std::system((git + "init -q . && rm -f .git/info/exclude").c_str()) == 0);
    agent::WalkOptions options;
    options.hidden = true;
    const Names ours = files_of(tree.fd(), options);
    const Names theirs = names_from(git + "ls-files --others --exclude-standard -z");
    CHECK_MESSAGE(ours == theirs, "in round " << round);
    options.honour_ignore = false;
    rules_that_matter += files_of(tree.fd(), options).size() > ours.size() + 5 ? 1 : 0;
  }
  CHECK(rules_that_matter > 20);
}
