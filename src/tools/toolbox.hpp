#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/arguments.hpp"
#include "tools/client_notices.hpp"
#include "tools/client_patience.hpp"
#include "tools/host_directories.hpp"
#include "tools/shown_cursors.hpp"
#include "tools/tool_selection.hpp"
#include "util/clock.hpp"

namespace dockbridge::tools {

/// Older servers whose tools can be listed as well.
enum class Compat { repl, coderunner };

struct Settings {
  milliseconds inactivity_timeout{20'000};
  double load_stretch = 1;  ///< factor for `inactivity_timeout` while the process waits for a CPU
  milliseconds max_wait{600'000};
  milliseconds client_timeout{50'000};         ///< longest wait for a client without progress
  std::vector<ClientWait> client_waits{};      ///< rows of the user; they precede the known ones
  milliseconds max_runtime{0};                 ///< 0 means no limit
  milliseconds session_idle_limit{3'600'000};  ///< of code sessions; 0 means no limit
  std::size_t max_python_sessions = 16;        ///< per owner
  std::uint8_t warm_interpreters = 1;          ///< kept ready after the first Python call
  bool may_use_ipython = true;                 ///< if the image has it
  bool rationale_required = true;
  bool match_is_read = false;                                 ///< an exact and unique oldString replaces a prior read
  ToolSelection selection{};                                  ///< tools that clients can see
  std::set<Compat> compat{};                                  ///< servers whose tools are listed as well
  std::shared_ptr<const HostDirectories> host_directories{};  ///< for copies to and from the host; null if none
};

/// Time for a call in addition to its own wait: to connect, to send requests, and to collect the output.
inline constexpr milliseconds k_call_patience{60'000};

/// Finds the container of a call; called once per call.
using SandboxResolver = std::function<sandbox::Sandbox&(const mcp::CallContext& context)>;

/// Input of a tool for one call. The tool reads all arguments before it acts.
struct ToolRequest {
  sandbox::Sandbox& sandbox;
  const Settings& settings;
  Arguments& arguments;
  const mcp::CallContext& context;
  const ToolSelection& listed;  ///< tools that this caller can see
  Clock::time_point began = Clock::now();
  std::shared_ptr<ShownCursors> shown = std::make_shared<ShownCursors>();  ///< shared by all calls
  std::shared_ptr<ClientNotices> notices = ClientNotices::make();          ///< shared by all calls

  /// The sentences of `text` that name only tools which the caller can see.
  [[nodiscard]] std::string hint(std::string_view text) const { return listed.keep_sentences(text); }

  /// To be called for each process that the reply shows. `started`: this call has started it.
  void show(const wire::ProcessState& state, bool started = false) const {
    notices->show({context.owner, context.client}, context.correlation_id, sandbox, state, started);
  }

  /// The limit of the whole call: its own wait, plus a minute for all requests to the container.
  [[nodiscard]] sandbox::CallLimit limit(milliseconds waits = {}) const {
    return {context.interruption.token(), Deadline::at(began + waits + k_call_patience)};
  }
};

/// The tools that the caller can see.
ToolSelection listed_for(const mcp::CallContext& context, const Settings& settings);

/// A text without the sentences that name a tool which is not visible.
std::string visible_text(const std::string& text, const std::function<bool(const std::string& tool)>& visible);

/// The tools that the settings select, in the order in which they are listed.
std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings);

}  // namespace dockbridge::tools
