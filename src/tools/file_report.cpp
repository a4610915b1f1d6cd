#include "tools/file_report.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <ctime>

#include "tools/tool_shape.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

using mcp::json;
using mcp::ordered_json;
using mcp::ToolResult;

namespace {

constexpr seconds k_heartbeat_interval{5};

std::string absolute_path(const ToolCall& call, const std::string& name, const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    call.arguments.reject(name, "contains a NUL byte");
  }
  if (path == "~" || path.starts_with("~/")) {
    // Without a connection the request itself reports the error.
    const auto hello = call.sandbox.hello(call.context.interruption.token());
    return hello ? hello->home + path.substr(1) : path;
  }
  return path.starts_with('/') ? path : call.sandbox.files().base() + "/" + path;
}

}  // namespace

std::string read_path(const ToolCall& call, const std::string& name) {
  const std::string path = call.arguments.required_text(name);
  if (path.empty()) {
    call.arguments.reject(name, "must not be empty");
  }
  return absolute_path(call, name, path);
}

std::string read_optional_path(const ToolCall& call, const std::string& name) {
  const auto path = call.arguments.text(name);
  return path ? absolute_path(call, name, *path) : call.sandbox.files().base();
}

sandbox::ChangeRequest read_change_request(const ToolCall& call) {
  sandbox::ChangeRequest request;
  request.path = read_path(call, "filePath");
  request.owner = call.context.owner;
  request.expected_revision = call.arguments.text("expectedRevision");
  return request;
}

ordered_json path_schema() {
  return {{"type", "string"}};
}

ordered_json revision_schema() {
  return {{"type", "string"}, {"description", "Revision that the file must have, instead of a prior read"}};
}

ToolResult tell_change(const sandbox::ChangedFile& file, const std::string& done) {
  ToolResult result;
  result.text = fmt::format("{} {} ({})", done, printable_line(file.path, 500), human_bytes(file.size));
  if (!file.diff.empty()) {
    result.text += "\n\n" + to_valid_utf8(file.diff).text;
  }
  std::vector<std::string> notes = file.notes;
  if (file.was_stale) {
    notes.push_back("others had changed the file since you read it; your edit was applied to what it is now" +
                    (file.stale_changes.empty() ? "" : ". They changed:\n" + to_valid_utf8(file.stale_changes).text));
  }
  if (!file.encoding.empty() && file.encoding != "utf-8") {
    notes.push_back("stored as " + file.encoding);
  }
  result.text = with_notes(std::move(result.text), notes);
  if (!file.revision.empty()) {
    result.text += "\nRevision: " + file.revision;
  }
  if (!file.change.empty()) {
    result.text += fmt::format("\nBackup: file_undo with change {} brings back what was there", file.change);
  }
  result.facts = {{"revision", file.revision}, {"change", file.change}};
  result.structured = {{"path", file.path},
                       {"size", file.size},
                       {"revision", file.revision},
                       {"created", file.before.empty()},
                       {"previousRevision", file.before},
                       {"change", file.change},
                       {"encoding", file.encoding},
                       {"linesAdded", file.added},
                       {"linesRemoved", file.removed},
                       {"diff", file.diff},
                       {"changedByOthers", file.was_stale},
                       {"notes", notes}};
  result.effect_complete = true;
  result.outcome = file.revision.empty() ? "" : "revision " + file.revision;
  return result;
}

ordered_json change_schema() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  return {{"path", {{"type", "string"}, {"description", "the real path, without symbolic links"}}},
          {"size", number},
          {"revision", {{"type", "string"}, {"description", "names the content; for expectedRevision"}}},
          {"created", {{"type", "boolean"}}},
          {"previousRevision", text},
          {"change", {{"type", "string"}, {"description", "for file_undo"}}},
          {"encoding", text},
          {"linesAdded", number},
          {"linesRemoved", number},
          {"diff", text},
          {"changedByOthers", {{"type", "boolean"}}},
          {"replacements", {{"type", "array"}, {"items", number}}},
          {"notes", {{"type", "array"}, {"items", text}}}};
}

void add_totals(const sandbox::SearchTotals& totals, std::uint64_t offset, std::uint64_t shown, const char* unit,
                ToolResult& result) {
  if (totals.more) {
    result.text +=
        fmt::format("\n[{} {} of {} shown; go on with offset: {}]", shown, unit, totals.total, offset + shown);
  }
  std::vector<std::string> passed_over;
  if (totals.ignored > 0) {
    passed_over.push_back(fmt::format("{} ignored by .gitignore or .ignore", totals.ignored));
  }
  if (totals.hidden > 0) {
    passed_over.push_back(fmt::format("{} hidden", totals.hidden));
  }
  if (totals.unreadable > 0) {
    passed_over.push_back(fmt::format("{} unreadable", totals.unreadable));
  }
  if (!passed_over.empty()) {
    result.text += fmt::format("\n[passed over: {}]", fmt::join(passed_over, ", "));
  }
  for (const std::string& path : totals.unreadable_paths) {
    result.text += "\n[could not read " + printable_line(path, 300) + "]";
  }
  result.structured["total"] = totals.total;
  result.structured["more"] = totals.more;
  if (totals.more) {
    result.structured["nextOffset"] = offset + shown;
  }
  result.structured["ignoredSkipped"] = totals.ignored;
  result.structured["hiddenSkipped"] = totals.hidden;
  result.structured["unreadable"] = totals.unreadable;
}

void add_totals_schema(ordered_json& properties) {
  const ordered_json number = {{"type", "integer"}};
  properties["total"] = number;
  properties["more"] = {{"type", "boolean"}};
  properties["nextOffset"] = number;
  properties["ignoredSkipped"] = number;
  properties["hiddenSkipped"] = number;
  properties["unreadable"] = number;
}

json entry_fields(const sandbox::FileEntry& entry, bool details) {
  json fields;
  fields["path"] = entry.path;
  fields["type"] = entry.type;
  if (!entry.target.empty()) {
    fields["target"] = entry.target;
  }
  if (details) {
    fields["size"] = entry.size;
    fields["modifiedAt"] = utc_time(entry.modified_at_ms);
    if (entry.mode) {
      fields["mode"] = fmt::format("{:04o}", *entry.mode);
    }
  }
  return fields;
}

ordered_json entry_schema() {
  const ordered_json text = {{"type", "string"}};
  return object_schema({{"path", text},
                        {"type", text},
                        {"size", {{"type", "integer"}}},
                        {"mode", text},
                        {"modifiedAt", text},
                        {"target", text}},
                       {"path", "type"});
}

std::string utc_time(std::int64_t unix_ms) {
  const auto when = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  return fmt::format(FMT_COMPILE("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z"), parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Heartbeat::Heartbeat(const mcp::CallContext& context, std::string message) {
  if (!context.report_progress) {
    return;
  }
  m_thread = std::thread([this, &context, message = std::move(message)] {
    std::unique_lock lock(m_mutex);
    while (!m_ended.wait_for(lock, k_heartbeat_interval, [&] { return m_over; })) {
      context.report_progress(message);
    }
  });
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(m_mutex);
    m_over = true;
  }
  m_ended.notify_all();
  if (m_thread.joinable()) {
    m_thread.join();
  }
}

}  // namespace dockbridge::tools
