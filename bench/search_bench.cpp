// Holds the agent's search against ripgrep on the same tree: `dockbridge-search-bench DIRECTORY [RUNS]`. See README.md.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/files/search.hpp"
#include "util/fd.hpp"

using namespace dockbridge;
using agent::SearchRequest;

namespace {

constexpr double k_bound = 1.1;
constexpr int k_least_runs = 15;

struct Case {
  const char* name;
  SearchRequest request;
  std::vector<std::string> rg_flags;
};

SearchRequest request(const std::string& pattern, SearchRequest::Output output = SearchRequest::Output::content,
                      bool literal = false, bool ignore_case = false) {
  SearchRequest one;
  one.pattern = pattern;
  one.output = output;
  one.literal = literal;
  one.ignore_case = ignore_case;
  return one;
}

std::vector<Case> cases() {
  using Output = SearchRequest::Output;
  return {{"literal, many hits", request("std::", Output::content, true), {"-F", "-n"}},
          {"literal, none", request("no such text here", Output::content, true), {"-F", "-n"}},
          {"regex, many hits", request(R"(\w+_type\s*[;&])"), {"-n", "--no-unicode"}},
          {"regex, none", request(R"(no_such_\w+_text\d+)"), {"-n", "--no-unicode"}},
          {"regex without a text", request("[A-Z]{4}[0-9]+x"), {"-n", "--no-unicode"}},
          {"either of three", request("unique_ptr|shared_ptr|weak_ptr"), {"-n"}},
          {"any case", request("namespace", Output::content, false, true), {"-n", "-i"}},
          {"any case, none", request("no such text here", Output::content, true, true), {"-F", "-n", "-i"}},
          {"files", request("#include", Output::files, true), {"-F", "-l"}},
          {"count", request("return", Output::count, true), {"-F", "-c"}}};
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

[[noreturn]] void give_up(const std::string& reason) {
  std::fprintf(stderr, "%s\n", reason.c_str());
  std::exit(2);
}

/// A process of its own as in the agent, where a search has one as well: from before it is made to its end.
double time_ours(const std::string& directory, const SearchRequest& one) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::_exit(agent::search(fd.get(), one) ? 0 : 2);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    give_up("our search failed");
  }
  return milliseconds_since(start);
}

double time_rg(const std::string& directory, const Case& one) {
  std::vector<std::string> words = {"rg", "--no-config", "--no-require-git", "--no-messages"};
  words.insert(words.end(), one.rg_flags.begin(), one.rg_flags.end());
  words.insert(words.end(), {"-e", one.request.pattern, directory});
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = 0;
  const bool started = ::posix_spawnp(&child, "rg", &actions, nullptr, arguments.data(), environ) == 0;
  const bool ended = started && ::waitpid(child, &status, 0) == child;
  const double time = milliseconds_since(start);
  ::posix_spawn_file_actions_destroy(&actions);
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
    give_up("rg failed or is not installed");
  }
  return time;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    give_up("usage: dockbridge-search-bench DIRECTORY [RUNS]");
  }
  const std::string directory = argv[1];
  const int runs = std::max(k_least_runs, argc > 2 ? std::atoi(argv[2]) : 0);
  bool all_met = true;
  std::printf("%-22s %10s %10s %7s   medians of %d runs, in ms\n", "search", "ours", "rg", "ratio", runs);
  for (const Case& one : cases()) {
    std::vector<double> ours;
    std::vector<double> theirs;
    time_ours(directory, one.request);
    time_rg(directory, one);
    for (int run = 0; run < runs; ++run) {
      ours.push_back(time_ours(directory, one.request));
      theirs.push_back(time_rg(directory, one));
    }
    const double ratio = median(ours) / median(theirs);
    all_met = all_met && ratio <= k_bound;
    std::printf("%-22s %10.1f %10.1f %7.2f%s\n", one.name, median(ours), median(theirs), ratio,
                ratio <= k_bound ? "" : "   NOT MET");
  }
  return all_met ? 0 : 1;
}
