#include "cli/bridge.hpp"
#include "cli/commands.hpp"
#include "mcp/server.hpp"
#include "mcp/transport/stdio.hpp"
#include "tools/toolbox.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::cli {

namespace {

constexpr std::size_t k_max_calls = 256;

constexpr const char* k_instructions =
    "You work in a persistent Docker container. execute_command runs shell commands there; files and processes stay "
    "between calls. Commands that fall silent are left running in the background under a processId: use check_process "
    "with a timeout to wait for them instead of polling, and send_input to answer prompts. Start servers with "
    "background: true. Output beyond the limit is cut in the middle; narrow it with grep, head or tail, or read on "
    "with "
    "check_process and since.";

}  // namespace

int serve(const Options& options, Log& log) {
  Bridge bridge(options, log);
  const auto resolve = [&](const mcp::CallContext&) -> sandbox::Sandbox& { return bridge.sandbox(); };
  const mcp::Server server({"dockbridge", "dockbridge", DOCKBRIDGE_VERSION, k_instructions},
                           tools::all_tools(resolve, options.tools));
  WorkerPool pool(k_max_calls);
  return mcp::serve_stdio(0, 1, server, pool, log);
}

}  // namespace dockbridge::cli
