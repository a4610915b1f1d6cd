#include <fmt/format.h>

#include "figures.hpp"
#include "proc.hpp"

namespace dockbridge::bench {

namespace {

constexpr std::uint64_t k_idle_server_bound_bytes = 20ULL * 1024 * 1024;
constexpr std::int64_t k_keeper_bound_bytes = 100 * 1024;

Figure idle_figure(const std::string& when, std::uint64_t bytes) {
  return {"idle server, resident, after " + when, in_mebibytes(bytes), "< " + in_mebibytes(k_idle_server_bound_bytes),
          bytes < k_idle_server_bound_bytes};
}

/// A command that prints a line and keeps running is left in the background after a second of silence.
void leave_one_running(Server& server) {
  server.send(execute_request(2, "echo ready; exec sleep 60", {{"maxWaitTime", 1}}));
  server.receive();
}

}  // namespace

std::vector<Figure> measure_idle_memory(const Setting& setting) {
  Server server(setting.launch);
  server.initialize();
  const std::uint64_t greeted = resident_bytes(server.pid());
  server.execute("true");
  const std::uint64_t used = resident_bytes(server.pid());
  leave_one_running(server);
  const auto keeper = static_cast<std::int64_t>(private_bytes(setting.container.pid_of(k_keeper_name)));
  return {idle_figure("initialize", greeted),
          idle_figure("a tool call", used),
          {"a keeper's private memory", in_kibibytes(keeper), "< " + in_kibibytes(k_keeper_bound_bytes),
           keeper < k_keeper_bound_bytes}};
}

}  // namespace dockbridge::bench
