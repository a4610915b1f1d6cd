#pragma once

#include <condition_variable>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/files.hpp"
#include "tools/arguments.hpp"
#include "tools/toolbox.hpp"
#include "util/mutex.hpp"

namespace dockbridge::tools {

// Shared parts of the file tools.

/// A path that a client gave in the argument `name`, made absolute. "~" is the home directory of the user that the
/// agent runs as.
std::string absolute_path(const ToolRequest& call, const std::string& name, const std::string& path);
/// The path in an argument, made absolute.
std::string read_path(const ToolRequest& call, const std::string& name);
/// The same for an optional argument. The default is the start of relative paths.
std::string read_optional_path(const ToolRequest& call, const std::string& name);
/// The path and owner of a change, and `expectedRevision`.
sandbox::ChangeRequest read_change_request(const ToolRequest& call);
std::optional<std::string> read_revision(Arguments& arguments);
/// `maxResults`, up to `largest`; 0 means as many as possible. nullopt if it is absent.
std::optional<std::size_t> read_max_results(Arguments& arguments, std::size_t largest);
/// The schema of `filePath`.
mcp::ordered_json path_schema();
mcp::ordered_json revision_schema();

/// Limits of a file tool's reply, unless an argument raises them. A part is reserved for notes at its end.
inline constexpr std::size_t k_default_reply_bytes = 10'000;
inline constexpr std::size_t k_default_reply_lines = 1'500;
inline constexpr std::size_t k_reply_reserve = 600;

/// Names files in replies so that a name can be passed to another call as it stands: relative to the workdir below it,
/// absolute elsewhere.
class ShownPaths {
 public:
  /// `given`: the client's name for a directory or file (empty: the workdir). `real`: its real path in the container.
  ShownPaths(std::string_view given, std::string_view workdir, std::string_view real);

  /// A path relative to the directory; empty for the named directory or file itself.
  [[nodiscard]] std::string of(const std::string& path) const;

 private:
  std::string m_start;  ///< empty for the workdir
};

/// "1 file", "2 files"
std::string counted(std::uint64_t count, std::string_view unit);

/// The first digits of a revision or change id. A client may pass them in place of the whole.
std::string short_revision(const std::string& revision);
std::string short_change(const std::string& change);

/// The diff and the notes of a change, each with a newline before it. Lines that exceed `max_bytes` are left out, and a
/// line says so; it ends with `hint`.
std::string shown_change(const sandbox::ChangedFile& file, std::size_t max_bytes, std::string_view hint);
/// Reports a change. `done` ("Wrote", "Edited") begins the first line.
mcp::ToolResult report_change(const ToolRequest& call, const sandbox::ChangedFile& file, const std::string& done);
/// A changed file in a reply about several.
struct ListedChange {
  std::string path;
  std::string name;  ///< the path with facts and notes
  std::string diff;  ///< starts with a newline; empty if it is not known
};
/// Each name with its diff behind it. If that exceeds `max_bytes`: the names, then as many diffs as fit.
std::string list_changes(std::span<const ListedChange> changes, std::size_t max_bytes);
/// The same as `report_change` for several files, or for a preview of changes to them.
/// `remarks` are lines for its end.
mcp::ToolResult report_changes(const ToolRequest& call, const std::vector<sandbox::ChangedFile>& files, bool preview,
                               const std::vector<std::string>& remarks = {});
mcp::ordered_json change_schema();

/// The part of a search that a reply shows.
struct ShownPart {
  std::uint64_t offset = 0;  ///< of the first result, as requested
  std::uint64_t count = 0;
  bool is_shortened = false;  ///< there is more, and the client has not set a limit
};

/// Adds how to continue a search that is shown in part, and what the search passed over. A shortened reply says so at
/// its start as well.
void add_totals(const sandbox::SearchTotals& totals, const ShownPart& part, const char* unit, const ShownPaths& paths,
                mcp::ToolResult& result);
/// Lines that say what a search passed over; `binary` files are counted too.
std::vector<std::string> passed_over(const sandbox::SearchTotals& totals, const ShownPaths& paths,
                                     std::uint64_t binary = 0);
void add_totals_schema(mcp::ordered_json& properties);

/// The structured form of a directory entry. `details` adds size, mode and time.
mcp::json entry_fields(const sandbox::FileEntry& entry, const std::string& path, bool details);
mcp::ordered_json entry_schema();
/// 2026-11-17T03:20:00Z
std::string utc_time(std::int64_t unix_ms);

/// Reports progress every few seconds during its lifetime.
class Heartbeat {
 public:
  Heartbeat(const mcp::CallContext& context, std::string message);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  Mutex m_mutex;
  std::condition_variable m_ended;
  bool m_over GUARDED_BY(m_mutex) = false;
  std::thread m_thread;
};

}  // namespace dockbridge::tools
