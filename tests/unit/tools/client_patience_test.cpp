#include "tools/client_patience.hpp"

#include <doctest/doctest.h>

#include "tools/following.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// The longest wait of a call by a client of this name.
milliseconds wait_for(const std::string& client_name, const tools::Settings& settings = {}, bool progress = true,
                      milliseconds waited = {}) {
  World world([](FakeAgent&, const wire::Frame&) {});
  const json none = json::object();
  tools::Arguments arguments(none);
  const mcp::Interruption interruption;
  mcp::CallContext context{"r1", "local", interruption};
  context.progress_detail = progress ? mcp::ProgressDetail::output : mcp::ProgressDetail::none;
  context.client_name = client_name;
  context.waited = waited;
  return tools::longest_wait({world.sandbox, settings, arguments, context, settings.selection});
}

}  // namespace

TEST_CASE("client patience: Codex gets its reply before its limit of 300 s") {
  CHECK(wait_for("codex-mcp-client") == seconds(240));
}

TEST_CASE("client patience: Claude Code gets its reply before its limit of 120 s") {
  CHECK(wait_for("claude-code") == seconds(110));
}

TEST_CASE("client patience: Gemini CLI gets its reply before its limit of 600 s") {
  CHECK(wait_for("gemini-cli-mcp-client") == seconds(540));
  CHECK(wait_for("gemini-cli-mcp-client-dockbridge") == seconds(540));
}

TEST_CASE("client patience: Qwen Code gets its reply before its limit of 600 s") {
  CHECK(wait_for("qwen-cli-mcp-client-dockbridge") == seconds(540));
}

TEST_CASE("client patience: clients without a limit of their own wait for --max-wait") {
  CHECK(wait_for("opencode") == seconds(600));
  CHECK(wait_for("") == seconds(600));
  CHECK(wait_for("claude-code-other") == seconds(600));
}

TEST_CASE("client patience: without a progress token --client-timeout applies") {
  CHECK(wait_for("opencode", {}, false) == seconds(50));
  CHECK(wait_for("codex-mcp-client", {}, false) == seconds(50));
  tools::Settings patient;
  patient.client_timeout = seconds(300);
  CHECK(wait_for("codex-mcp-client", patient, false) == seconds(240));
}

TEST_CASE("client patience: --client-wait replaces the known limits, up to --max-wait") {
  tools::Settings settings;
  settings.client_waits = {{"codex-mcp-client", seconds(500)}, {"my-*", seconds(70)}};
  CHECK(wait_for("codex-mcp-client", settings) == seconds(500));
  CHECK(wait_for("my-agent", settings, false) == seconds(70));
  CHECK(wait_for("claude-code", settings) == seconds(110));
  settings.max_wait = seconds(60);
  CHECK(wait_for("codex-mcp-client", settings) == seconds(60));
  CHECK(wait_for("claude-code", settings) == seconds(60));
}

TEST_CASE("client patience: the time that a call has waited for capacity counts") {
  CHECK(wait_for("claude-code", {}, true, seconds(10)) == seconds(100));
  CHECK(wait_for("opencode", {}, false, milliseconds(2500)) == milliseconds(47'500));
  tools::Settings settings;
  settings.max_wait = seconds(5);
  CHECK(wait_for("opencode", settings, true, seconds(10)) == milliseconds(0));
}

TEST_CASE("client patience: recorded timeouts are distinguished from aborts") {
  CHECK(tools::is_client_timeout("SdkError: Request timed out"));
  CHECK(tools::is_client_timeout("McpError: MCP error -32001: Request timed out"));
  for (const char* reason : {"AbortError: user-cancel", "MCP request cancelled by caller",
                             "AbortError: The operation was aborted.", "", "Request timed out by the user"}) {
    CAPTURE(reason);
    CHECK_FALSE(tools::is_client_timeout(reason));
  }
}
