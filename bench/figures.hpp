#pragma once

#include <string>
#include <vector>

#include "container.hpp"
#include "server.hpp"
#include "table.hpp"

namespace dockbridge::bench {

/// What every measurement works with. Each starts servers of its own, one at a time, in the same container.
struct Setting {
  const Container& container;
  Launch launch;
  /// `bare_spawn` in the container.
  std::string bare_spawn;
};

/// The most memory that a program may take, whatever it has to do.
Figure peak_figure(const std::string& who, std::uint64_t bytes);

/// One short command against the least it can cost, and against docker exec.
std::vector<Figure> measure_call_latency(const Setting& setting);
/// Many commands at once.
std::vector<Figure> measure_concurrency(const Setting& setting);
/// Many commands in a row: what they leave behind.
std::vector<Figure> measure_growth(const Setting& setting);
/// A flood of output: who holds how much of it.
std::vector<Figure> measure_flood(const Setting& setting);
/// Hundreds of processes at once: listed, and killed.
std::vector<Figure> measure_many_processes(const Setting& setting);
/// What a client that does not read its answers costs another.
std::vector<Figure> measure_silent_client(const Setting& setting);
/// How soon a wait ends, and a new server finds what an old one started.
std::vector<Figure> measure_waiting(const Setting& setting);
/// From the start of the process to its first answers. Needs the agent in its place.
std::vector<Figure> measure_startup(const Setting& setting);
/// Small files read, edited, written and listed.
std::vector<Figure> measure_files(const Setting& setting);
/// Many files, and a large one.
std::vector<Figure> measure_large_files(const Setting& setting);
/// What the server and a keeper cost while nothing happens.
std::vector<Figure> measure_idle_memory(const Setting& setting);

}  // namespace dockbridge::bench
