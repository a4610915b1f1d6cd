// Usage: conformance_fixture [PORT]
// Serves what the official conformance suite expects with the mcp library of dockbridge. Prints the URL.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "conformance/fixture.hpp"
#include "mcp/transport/http_server.hpp"

using namespace dockbridge;

namespace {

volatile std::sig_atomic_t g_stop = 0;

}  // namespace

int main(int argc, char** argv) {
  mcp::Bulletin* bulletin = nullptr;
  std::vector<mcp::Tool> tools;
  for (auto& some : {test::content_tools(), test::asking_tools(), test::input_required_tools(), test::task_tools(),
                     test::changing_tools(bulletin)}) {
    tools.insert(tools.end(), some.begin(), some.end());
  }
  test::FixtureResources resources;
  mcp::ServerInfo info{"conformance-fixture", "Conformance fixture", "1", "Only for tests."};
  info.announces_lists = true;
  info.unasked_log = mcp::LogSeverity::debug;
  const mcp::Server server(info, {tools, test::fixture_prompts(), &resources});
  Log log(STDERR_FILENO, LogLevel::warn, LogFormat::text);
  mcp::Hub hub(server, log);
  bulletin = &hub.bulletin;
  mcp::CallScheduler scheduler({.calls = 64}, hub.metrics);
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  mcp::HttpSettings settings;
  settings.endpoint.port = argc > 1 ? argv[1] : "0";
  auto http = mcp::HttpServer::start(settings, hub, scheduler);
  if (!http) {
    fmt::print(stderr, "{}\n", http.error().sentence());
    return 1;
  }
  fmt::print("http://127.0.0.1:{}/mcp\n", (*http)->port());
  std::fflush(stdout);
  while (g_stop == 0) {
    ::poll(nullptr, 0, -1);
  }
  return (*http)->stop() ? 0 : 1;
}
