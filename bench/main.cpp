#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>

#include "figures.hpp"
#include "interruption.hpp"
#include "proc.hpp"

using namespace dockbridge::bench;

namespace {

constexpr dockbridge::seconds k_time_allowed{150};
constexpr const char* k_bare_spawn_path = "/bare_spawn";

struct Measurement {
  const char* name;
  std::vector<Figure> (*measure)(const Setting&);
};

/// The order matters: the first calls place the agent in the container, and the start-up figures require that.
constexpr Measurement k_measurements[] = {
    {"call latency", measure_call_latency},
    {"shell calls", measure_shell_calls},
    {"commands at once", measure_concurrency},
    {"commands in a row", measure_growth},
    {"flood of output", measure_flood},
    {"many processes", measure_many_processes},
    {"client that does not read", measure_silent_client},
    {"waiting", measure_waiting},
    {"files", measure_files},
    {"large files", measure_large_files},
    {"start-up", measure_startup},
    {"idle memory", measure_idle_memory},
};

/// A measurement that fails counts as a bound that is not met; the others still count.
std::vector<Figure> measure_all(const Setting& setting, const std::string& only) {
  std::vector<Figure> figures;
  for (const auto& [name, measure] : k_measurements) {
    if (!only.empty() && only != name) {
      continue;
    }
    fmt::print(stderr, "measuring {} ...\n", name);
    try {
      const auto measured = measure(setting);
      figures.insert(figures.end(), measured.begin(), measured.end());
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}: {}\n", name, error.what());
      figures.push_back({name, "failed, see above", "", false});
    }
  }
  return figures;
}

bool bench(const std::string& program, const std::string& bare_spawn, const std::string& image,
           std::vector<std::string> arguments, const std::string& only) {
  const Container container(image);
  container.copy_in(bare_spawn, k_bare_spawn_path);
  arguments.insert(arguments.end(), {"--container-name", container.name(), "--no-create"});
  const Setting setting{container, {program, arguments}, k_bare_spawn_path};
  const ProcessorTime before = processor_time();
  const auto figures = measure_all(setting, only);
  const ProcessorTime after = processor_time();
  print_table(figures);
  fmt::print("\nThe hypervisor took {:.1f} % of the processor time for other machines.\n",
             100.0 * static_cast<double>(after.stolen - before.stolen) / static_cast<double>(after.all - before.all));
  return std::all_of(figures.begin(), figures.end(), [](const Figure& figure) { return figure.met; });
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string program = here / "dockbridge";
  std::string image = "dockbridge-test:slim";
  std::string via = "engine";
  CLI::App app{"Measures latency, memory and limits of dockbridge. Exits with 0 if every bound is met.",
               "dockbridge-bench"};
  app.add_option("PROGRAM", program, "dockbridge program to measure")->capture_default_str()->check(CLI::ExistingFile);
  app.add_option("--image", image, "image of the container")->capture_default_str();
  app.add_option("--via", via, "the channel")->capture_default_str()->check(CLI::IsMember({"engine", "exec"}));
  bool through_engine = false;
  app.add_flag("--no-direct-line", through_engine, "use the engine instead of the direct line");
  std::string only;
  std::set<std::string> names;
  for (const Measurement& measurement : k_measurements) {
    names.insert(measurement.name);
  }
  app.add_option("--only", only, "run one measurement")->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);

  unwind_on_signals(k_time_allowed);
  try {
    std::vector<std::string> arguments = {"--via", via};
    if (through_engine) {
      arguments.emplace_back("--no-direct-line");
    }
    return bench(program, here / "bare_spawn", image, arguments, only) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dockbridge-bench: {}\n", error.what());
    return 2;
  }
}
