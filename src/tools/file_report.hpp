#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "mcp/tool.hpp"
#include "sandbox/files.hpp"
#include "tools/arguments.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

// What the file tools have in common.

/// A path in the container, made absolute. "~" is the home directory of the user that the agent runs as.
std::string read_path(const ToolCall& call, const std::string& name);
/// The same of an argument that may be absent; the default is the directory that relative paths start at.
std::string read_optional_path(const ToolCall& call, const std::string& name);
/// Whose change it is, and `expectedRevision`.
sandbox::ChangeRequest read_change_request(const ToolCall& call);
/// The schema of `filePath`.
mcp::ordered_json path_schema();
mcp::ordered_json revision_schema();

/// How a change went: `done` ("Wrote", "Edited") begins the first line.
mcp::ToolResult tell_change(const sandbox::ChangedFile& file, const std::string& done);
mcp::ordered_json change_schema();

/// Adds how a search that was shown in part goes on, and what it passed over.
void add_totals(const sandbox::SearchTotals& totals, std::uint64_t offset, std::uint64_t shown, const char* unit,
                mcp::ToolResult& result);
void add_totals_schema(mcp::ordered_json& properties);

/// An entry of a directory for programs; size, mode and time are details.
mcp::json entry_fields(const sandbox::FileEntry& entry, bool details);
mcp::ordered_json entry_schema();
/// 2026-11-17T03:20:00Z
std::string utc_time(std::int64_t unix_ms);

/// Tells the client every few seconds that a call is still at work, for as long as it lives.
class Heartbeat {
 public:
  Heartbeat(const mcp::CallContext& context, std::string message);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  std::mutex m_mutex;
  std::condition_variable m_ended;
  bool m_over = false;
  std::thread m_thread;
};

}  // namespace dockbridge::tools
