#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "cli/bridge.hpp"
#include "cli/commands.hpp"
#include "cli/http.hpp"
#include "mcp/call_scheduler.hpp"
#include "mcp/hub.hpp"
#include "mcp/server.hpp"
#include "mcp/transport/stdio.hpp"
#include "tools/client_patience.hpp"
#include "tools/command_tasks.hpp"
#include "tools/prompts.hpp"
#include "tools/resources.hpp"
#include "tools/skills.hpp"
#include "tools/toolbox.hpp"
#include "util/memory.hpp"

namespace dockbridge::cli {

namespace {

/// Higher than the limit of one owner over HTTP, so that no owner can use all threads.
constexpr std::size_t k_max_calls = 512;
/// Memory for a long reply and its parts.
constexpr std::size_t k_kept_memory = 2 * 1024 * 1024;

/// Icon: a box with an arrow into and out of it.
constexpr const char* k_icon =
    "data:image/svg+xml;base64,"
    "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAyNCAyNCI+"
    "PHBhdGggZD0iTTQgNmgxNnYxMkg0eiIgZmls"
    "bD0ibm9uZSIgc3Ryb2tlPSIjMjQ5NmVkIiBzdHJva2Utd2lkdGg9IjIiLz48cGF0aCBkPSJNMCAxMmgyNCIgc3Ryb2tlPSIjMjQ5NmVkIiBzdHJva2"
    "Ut"
    "d2lkdGg9IjIiLz48L3N2Zz4=";

Fd stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

void wait_for(int fd) {
  pollfd polled{fd, POLLIN, 0};
  while (::poll(&polled, 1, -1) < 0) {
  }
}

}  // namespace

int serve(const Options& options, Log& log) {
  keep_freed_memory(k_kept_memory);
  const Fd signals = stop_signals();
  Bridge bridge(options, log);
  const auto resolve = [&](const mcp::CallContext&) -> sandbox::Sandbox& { return bridge.sandbox(); };
  tools::SandboxResources resources(bridge.sandbox());
  tools::CommandTasks command_tasks(bridge.sandbox(), options.tools);
  const mcp::Server server({.name = "dockbridge",
                            .title = "dockbridge",
                            .version = DOCKBRIDGE_VERSION,
                            .instructions = options.tools.selection.keep_sentences(tools::k_instructions),
                            .icon = k_icon,
                            .representation = options.representation},
                           {tools::all_tools(resolve, options.tools), tools::all_prompts(bridge.sandbox()), &resources,
                            &command_tasks, tools::all_skills(), tools::visible_text});
  mcp::Hub hub(server, log);
  hub.is_client_timeout = tools::is_client_timeout;
  resources.publish_to(hub.bulletin);
  mcp::CallScheduler scheduler({.calls = k_max_calls}, hub.metrics);
  std::unique_ptr<mcp::HttpServer> http;
  if (!options.http.port.empty()) {
    auto started = start_http(options, bridge, hub, scheduler);
    if (!started) {
      fmt::print(stderr, "dockbridge: {}\n", started.error().sentence());
      return 2;
    }
    http = std::move(*started);
  }
  bool abandoned = false;
  bool stopped = false;
  if (!http || options.http.stdio_too) {
    stopped = mcp::serve_stdio(0, 1, signals.get(), hub, scheduler, options.max_message_bytes, abandoned) ==
              mcp::StdioEnd::stopped;
  }
  if (http) {
    if (!stopped) {
      wait_for(signals.get());
    }
    abandoned = !http->stop() || abandoned;
  }
  if (abandoned) {
    // Calls that do not return in time wait for an engine that hangs. Nothing is lost: the container keeps running.
    log.warn("abandoning calls that do not return");
    ::_exit(0);
  }
  return 0;
}

}  // namespace dockbridge::cli
