// Compares file_grep with ripgrep on the same tree in the same container: `dockbridge-search-bench [PROGRAM] [--tree
// DIRECTORY]`. See README.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "container.hpp"
#include "interruption.hpp"
#include "server.hpp"
#include "table.hpp"

using namespace dockbridge::bench;

namespace {

constexpr double k_bound = 1.1;
// The two alternate, so that other load affects both alike.
constexpr int k_rounds = 7;
constexpr int k_runs_per_round = 3;
constexpr dockbridge::seconds k_time_allowed{170};
constexpr const char* k_spawner = "/bare_spawn";
constexpr const char* k_tree = "/tree";

struct Case {
  const char* name;
  std::string pattern;
  json arguments;  ///< of file_grep, in addition to pattern and path
  std::vector<std::string> rg_flags;
};

std::vector<Case> cases() {
  return {{"literal, rare", "BOOST_REGEX_ESTIMATE_MAX", {{"literal", true}}, {"-F"}},
          {"literal, many hits", "std::", {{"literal", true}}, {"-F"}},
          {"literal, none", "no such text here", {{"literal", true}}, {"-F"}},
          {"regex, rare", R"(unordered_[a-z]+_map<[a-z]+,)", json::object(), {}},
          {"regex, many hits", R"([a-z]+_type[ ]*[;&])", json::object(), {}},
          {"regex, many hits, classes", R"(\w+_type\s*[;&])", json::object(), {}},
          {"regex, none", R"(no_such_[a-z]+_text[0-9]+)", json::object(), {}},
          {"regex without a text", "[A-Z]{4}[0-9]+x", json::object(), {}},
          {"either of three", "unique_ptr|shared_ptr|weak_ptr", json::object(), {}},
          {"any case, many hits", "namespace", {{"caseInsensitive", true}}, {"-i"}},
          {"any case, none", "no such text here", {{"literal", true}, {"caseInsensitive", true}}, {"-F", "-i"}},
          {"files", "#include", {{"literal", true}, {"output", "files"}}, {"-F", "-l"}},
          {"count", "return", {{"literal", true}, {"output", "count"}}, {"-F", "-c"}}};
}

/// The whole call, as a client sees it.
Samples::Duration time_grep(Server& server, const Case& one) {
  json arguments = one.arguments;
  arguments.update({{"pattern", one.pattern}, {"path", k_tree}});
  const std::string request = call_request(1, "file_grep", std::move(arguments));
  const auto began = dockbridge::Clock::now();
  server.send(request);
  const std::string answer = server.receive();
  const auto took = dockbridge::Clock::now() - began;
  if (json::parse(answer).at("result").value("isError", true)) {
    throw std::runtime_error(answer.substr(0, 1000));
  }
  return took;
}

/// Time from its start to its end, measured in the container, without the cost of docker exec.
void add_rg_runs(const Container& container, const Case& one, Samples& samples) {
  std::vector<std::string> command = {k_spawner, "--quiet", std::to_string(k_runs_per_round), "/usr/bin/rg"};
  command.insert(command.end(), one.rg_flags.begin(), one.rg_flags.end());
  command.insert(command.end(), {"-e", one.pattern, k_tree});
  std::istringstream lines(run(container.exec_command(command)));
  for (double nanoseconds = 0; lines >> nanoseconds;) {
    samples.add(std::chrono::duration<double, std::nano>(nanoseconds));
  }
}

bool compare(Server& server, const Container& container, const Case& one) {
  Samples ours;
  Samples theirs;
  time_grep(server, one);
  for (int round = 0; round < k_rounds; ++round) {
    add_rg_runs(container, one, theirs);
    time_grep(server, one);  // as there, one that does not count
    for (int i = 0; i < k_runs_per_round; ++i) {
      ours.add(time_grep(server, one));
    }
  }
  const double ratio = ours.median() / theirs.median();
  fmt::print("{:<26} {:>10.1f} {:>10.1f} {:>7.2f}{}\n", one.name, ours.median().count(), theirs.median().count(), ratio,
             ratio <= k_bound ? "" : "   NOT MET");
  return ratio <= k_bound;
}

bool bench(const std::string& program, const std::string& spawner, const std::string& image, const std::string& tree,
           const std::string& only) {
  const Container container(image, {"--volume", fmt::format("{}:{}:ro", tree, k_tree)});
  container.copy_in(spawner, k_spawner);
  Server server({program, {"--container-name", container.name(), "--no-create"}});
  server.initialize();
  fmt::print("{:<26} {:>10} {:>10} {:>7}   medians of {} runs, in ms\n", "search", "file_grep", "rg", "ratio",
             k_rounds * k_runs_per_round);
  bool all_met = true;
  for (const Case& one : cases()) {
    if (only.empty() || only == one.name) {
      all_met = compare(server, container, one) && all_met;
    }
  }
  return all_met;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string program = here / "dockbridge";
  std::string image = "dockbridge-test:slim";
  std::string tree = "/usr/include";
  std::string only;
  CLI::App app{"Compares file_grep with ripgrep. Exits with 0 if no ratio exceeds the bound.",
               "dockbridge-search-bench"};
  app.add_option("PROGRAM", program, "dockbridge program to measure")->capture_default_str()->check(CLI::ExistingFile);
  app.add_option("--tree", tree, "directory to search, mounted read-only")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  app.add_option("--image", image, "image of the container; needs rg")->capture_default_str();
  app.add_option("--only", only, "run one search");
  CLI11_PARSE(app, argc, argv);

  unwind_on_signals(k_time_allowed);
  try {
    return bench(program, here / "bare_spawn", image, tree, only) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dockbridge-search-bench: {}\n", error.what());
    return 2;
  }
}
