#pragma once

#include <string>
#include <vector>

#include "container.hpp"
#include "server.hpp"
#include "table.hpp"

namespace dockbridge::bench {

/// Setting of every measurement. Each starts servers of its own, one at a time, in the same container.
struct Setting {
  const Container& container;
  Launch launch;
  /// `bare_spawn` in the container.
  std::string bare_spawn;
};

/// Bound for the memory of a program.
Figure peak_figure(const std::string& who, std::uint64_t bytes);

/// One short command, compared with a bare start and with docker exec.
std::vector<Figure> measure_call_latency(const Setting& setting);
/// Many commands at once.
/// A call in a shell that remembers, compared with a fresh one.
std::vector<Figure> measure_shell_calls(const Setting& setting);
std::vector<Figure> measure_concurrency(const Setting& setting);
/// Many commands in a row: growth of memory and descriptors.
std::vector<Figure> measure_growth(const Setting& setting);
/// A flood of output: the memory of server, session and keeper.
std::vector<Figure> measure_flood(const Setting& setting);
/// Hundreds of processes at once: listed, and killed.
std::vector<Figure> measure_many_processes(const Setting& setting);
/// The effect of a client that does not read its answers on another.
std::vector<Figure> measure_silent_client(const Setting& setting);
/// Time until a wait ends, and until a new server finds the process of an old one.
std::vector<Figure> measure_waiting(const Setting& setting);
/// Time from the start of the process to its first answers. Requires that the agent is placed.
std::vector<Figure> measure_startup(const Setting& setting);
/// Small files read, edited, written and listed.
std::vector<Figure> measure_files(const Setting& setting);
/// Many files, and a large one.
std::vector<Figure> measure_large_files(const Setting& setting);
/// Memory of an idle server and a keeper.
std::vector<Figure> measure_idle_memory(const Setting& setting);

}  // namespace dockbridge::bench
