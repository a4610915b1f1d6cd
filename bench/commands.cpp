#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "figures.hpp"
#include "proc.hpp"

namespace dockbridge::bench {

namespace {

constexpr int k_commands = 1000;
constexpr int k_commands_to_settle = 100;
constexpr std::int64_t k_growth_bound_bytes = 1024 * 1024;

constexpr std::uint64_t k_flood_bytes = 1024ULL * 1024 * 1024;
constexpr std::size_t k_reply_bound_bytes = 1024 * 1024;
constexpr milliseconds k_sample_interval{5};
constexpr milliseconds k_flood_patience{40'000};

struct Footprint {
  std::int64_t resident;
  std::int64_t descriptors;
};

Footprint footprint_of(pid_t pid) {
  return {static_cast<std::int64_t>(resident_bytes(pid)), static_cast<std::int64_t>(open_descriptors(pid))};
}

/// Number of commands with wrong output.
int run_commands(Server& server, int first, int last) {
  int errors = 0;
  for (int number = first; number < last; ++number) {
    server.send(execute_request(number, fmt::format("echo {}", number)));
    const json answer = json::parse(server.receive());
    const json structured = answer.value("result", json::object()).value("structuredContent", json::object());
    errors += structured.value("stdout", "") == fmt::format("{}\n", number) ? 0 : 1;
  }
  return errors;
}

Figure growth_figure(const std::string& who, const Footprint& before, const Footprint& after) {
  const std::int64_t memory = after.resident - before.resident;
  const std::int64_t descriptors = after.descriptors - before.descriptors;
  return {fmt::format("  growth of the {} (resident, descriptors)", who),
          fmt::format("{}, {:+}", in_kibibytes(memory), descriptors),
          fmt::format("< {}, 0", in_kibibytes(k_growth_bound_bytes)),
          memory < k_growth_bound_bytes && descriptors <= 0};
}

/// Largest sampled size of the keeper until the answer.
std::uint64_t watch_keeper(const Server& server, pid_t keeper, Deadline deadline) {
  std::uint64_t peak = 0;
  while (!server.has_answer(k_sample_interval)) {
    if (deadline.passed()) {
      throw std::runtime_error("the flood of output did not end");
    }
    try {
      peak = std::max(peak, peak_resident_bytes(keeper));
    } catch (const std::runtime_error&) {
      continue;  // it has ended, and the answer follows
    }
  }
  return peak;
}

Figure reply_figure(const std::string& answer) {
  const json result = success_of(answer);
  const auto total = result.at("structuredContent").value("stdoutBytes", std::uint64_t{0});
  const auto left_out = result.at("structuredContent").value("stdoutLeftOut", std::uint64_t{0});
  const std::string text = result.at("content").at(0).value("text", "");
  const bool honest =
      total == k_flood_bytes && left_out > 0 && text.find(std::to_string(left_out)) != std::string::npos;
  return {"1 GiB of output: size of the reply, stated omission",
          fmt::format("{} bytes, {}", answer.size(), honest ? fmt::format("states {}", left_out) : "not stated"),
          fmt::format("< {} bytes, says", k_reply_bound_bytes), honest && answer.size() < k_reply_bound_bytes};
}

}  // namespace

Figure peak_figure(const std::string& who, std::uint64_t bytes) {
  constexpr std::uint64_t k_bound_bytes = 64ULL * 1024 * 1024;
  return {fmt::format("  peak resident memory of the {}", who), in_mebibytes(bytes), "< " + in_mebibytes(k_bound_bytes),
          bytes > 0 && bytes < k_bound_bytes};
}

std::vector<Figure> measure_growth(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  int errors = run_commands(server, 0, k_commands_to_settle);
  const pid_t session = setting.container.pid_of(k_session_name);
  const Footprint server_before = footprint_of(server.pid());
  const Footprint session_before = footprint_of(session);
  errors += run_commands(server, k_commands_to_settle, k_commands);
  const int zombies = setting.container.zombies();
  return {{fmt::format("{} sequential commands", k_commands), fmt::format("{} errors, {} zombies", errors, zombies),
           "0, 0", errors == 0 && zombies == 0},
          growth_figure("server", server_before, footprint_of(server.pid())),
          growth_figure("session", session_before, footprint_of(session))};
}

std::vector<Figure> measure_flood(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  server.execute("true");
  const pid_t session = setting.container.pid_of(k_session_name);
  server.send(execute_request(1, fmt::format("head -c {} /dev/zero | tr '\\0' x", k_flood_bytes)));
  const pid_t keeper = setting.container.pid_of(k_keeper_name);
  const std::uint64_t keeper_peak = watch_keeper(server, keeper, Deadline::after(k_flood_patience));
  const std::string answer = server.receive();
  return {reply_figure(answer), peak_figure("server", peak_resident_bytes(server.pid())),
          peak_figure("session", peak_resident_bytes(session)), peak_figure("keeper", keeper_peak)};
}

}  // namespace dockbridge::bench
