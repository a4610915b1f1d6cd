#include "tools/file_report.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <numeric>

#include "tools/tool_shape.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::tools {

using mcp::json;
using mcp::ordered_json;
using mcp::ToolResult;

namespace {

constexpr seconds k_heartbeat_interval{5};
constexpr std::size_t k_shown_path_bytes = 4096;

}  // namespace

std::string absolute_path(const ToolRequest& call, const std::string& name, const std::string& path) {
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

std::string read_path(const ToolRequest& call, const std::string& name) {
  const std::string path = call.arguments.required_text(name);
  if (path.empty()) {
    call.arguments.reject(name, "must not be empty");
  }
  return absolute_path(call, name, path);
}

std::string read_optional_path(const ToolRequest& call, const std::string& name) {
  const auto path = call.arguments.text(name);
  return path ? absolute_path(call, name, *path) : call.sandbox.files().base();
}

sandbox::ChangeRequest read_change_request(const ToolRequest& call) {
  sandbox::ChangeRequest request;
  request.path = read_path(call, "filePath");
  request.owner = call.context.owner;
  request.expected_revision = read_revision(call.arguments);
  return request;
}

std::optional<std::string> read_revision(Arguments& arguments) {
  auto revision = arguments.text("expectedRevision");
  if (revision && !revision->empty() && !wire::is_revision_start(*revision)) {
    arguments.reject("expectedRevision", fmt::format("must be 8 to 32 hexadecimal digits, as replies show them, got {}",
                                                     printable_line(*revision, 40)));
  }
  return revision;
}

std::optional<std::size_t> read_max_results(Arguments& arguments, std::size_t largest) {
  const auto given = arguments.integer("maxResults", 0, std::numeric_limits<std::int32_t>::max());
  if (!given) {
    return std::nullopt;
  }
  return *given == 0 ? largest : std::min(static_cast<std::size_t>(*given), largest);
}

std::string counted(std::uint64_t count, std::string_view unit) {
  return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
}

ordered_json path_schema() {
  return {{"type", "string"}};
}

ordered_json revision_schema() {
  return {{"type", "string"}, {"description", "Required revision, instead of a prior read"}};
}

ShownPaths::ShownPaths(std::string_view given, std::string_view workdir, std::string_view real) {
  std::string named;
  bool is_plain = !given.starts_with('~');
  for (std::string_view rest = given; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    is_plain = is_plain && name != "..";  // may leave a symbolic link
    if (!name.empty() && name != ".") {
      named += "/" + std::string(name);
    }
  }
  while (workdir.ends_with('/')) {
    workdir.remove_suffix(1);
  }
  if (is_plain && !given.starts_with('/')) {
    m_start = named.empty() ? "" : named.substr(1);
    return;
  }
  const std::string path = is_plain ? named : std::string(real);
  const bool is_below = path.starts_with(workdir) && (path.size() == workdir.size() || path[workdir.size()] == '/');
  m_start = !is_below ? path : path.size() > workdir.size() + 1 ? path.substr(workdir.size() + 1) : "";
  if (!is_below && m_start.empty()) {
    m_start = "/";
  }
}

std::string ShownPaths::of(const std::string& path) const {
  const char* between = m_start.empty() || path.empty() || m_start.ends_with('/') ? "" : "/";
  const std::string whole = m_start + between + path;
  return whole.empty() ? "." : printable_line(whole.starts_with('~') ? "./" + whole : whole, k_shown_path_bytes);
}

std::string short_revision(const std::string& revision) {
  return revision.substr(0, wire::k_short_digits);
}

std::string short_change(const std::string& change) {
  return change.size() > wire::k_change_prefix.size()
             ? change.substr(wire::k_change_prefix.size(), wire::k_short_digits)
             : "";
}

namespace {

/// A diff without the lines that name the file.
std::string_view without_names(std::string_view diff) {
  for (const char* start : {"--- ", "+++ "}) {
    if (diff.starts_with(start)) {
      diff.remove_prefix(std::min(diff.find('\n'), diff.size() - 1) + 1);
    }
  }
  return diff.ends_with('\n') ? diff.substr(0, diff.size() - 1) : diff;
}

std::vector<std::string> notes_of(const sandbox::ChangedFile& file) {
  std::vector<std::string> notes = file.notes;
  if (!file.encoding.empty() && file.encoding != wire::name_of(wire::Encoding::utf8)) {
    notes.push_back("stored as " + file.encoding);
  }
  if (file.was_stale) {
    notes.push_back("others had changed the file since you read it; your edit was applied to what it is now" +
                    (file.stale_changes.empty() ? "" : ". They changed:\n" + to_valid_utf8(file.stale_changes).text));
  }
  return notes;
}

json change_fields(const sandbox::ChangedFile& file) {
  return {{"path", file.path},
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
          {"replacements", file.replacements},
          {"notes", notes_of(file)}};
}

/// The first lines of a text whose lines begin with a newline.
std::string_view first_lines(std::string_view text, std::size_t max_bytes) {
  return text.size() <= max_bytes ? text : text.substr(0, text.rfind('\n', max_bytes));
}

std::uint64_t replacements_in(const sandbox::ChangedFile& file) {
  return std::accumulate(file.replacements.begin(), file.replacements.end(), std::uint64_t{0});
}

}  // namespace

std::string shown_change(const sandbox::ChangedFile& file, std::size_t max_bytes, std::string_view hint) {
  const std::string whole_diff = file.diff.empty() ? "" : "\n" + to_valid_utf8(without_names(file.diff)).text;
  const std::string all_notes = with_notes("", notes_of(file));
  const std::string_view notes =
      first_lines(all_notes, std::max(max_bytes / 3, max_bytes - std::min(max_bytes, whole_diff.size())));
  const std::string_view diff = first_lines(whole_diff, max_bytes - notes.size());
  std::uint64_t left_out = file.added + file.removed;
  for (std::size_t at = diff.find('\n'); at != std::string_view::npos; at = diff.find('\n', at + 1)) {
    const bool is_changed_line = diff.substr(at + 1).starts_with('+') || diff.substr(at + 1).starts_with('-');
    left_out -= is_changed_line && left_out > 0 ? 1 : 0;
  }
  std::string text(diff);
  if (left_out > 0 && !file.diff.empty()) {
    text += fmt::format("\n[{} of {} changed lines left out{}]", left_out, file.added + file.removed, hint);
  }
  text += notes;
  return notes.size() < all_notes.size() ? text + fmt::format("\n[the rest of this note is left out{}]", hint) : text;
}

ToolResult report_change(const ToolRequest& call, const sandbox::ChangedFile& file, const std::string& done) {
  ToolResult result;
  const ShownPaths paths(file.path, call.sandbox.files().base(), file.path);
  result.text = fmt::format("{} {} ({})", done, paths.of(""), human_bytes(file.size));
  constexpr std::size_t k_room = k_default_reply_bytes - k_reply_reserve;
  result.text += shown_change(file, k_room - std::min(k_room, result.text.size()),
                              call.listed.contains("file_read") ? "; file_read shows the file" : "");
  if (!file.revision.empty()) {
    result.text += fmt::format("\n[revision {}{}]", short_revision(file.revision),
                               file.change.empty() || !call.listed.contains("file_undo")
                                   ? ""
                                   : fmt::format("; undo: file_undo change {}", short_change(file.change)));
  }
  result.facts = {{"revision", file.revision}, {"change", file.change}};
  result.structured = change_fields(file);
  result.effect_complete = true;
  result.outcome = file.revision.empty() ? "" : "revision " + file.revision;
  return result;
}

std::string list_changes(std::span<const ListedChange> changes, std::size_t max_bytes) {
  std::string interleaved;
  for (const ListedChange& change : changes) {
    interleaved += "\n" + change.name + change.diff;
  }
  const bool has_all_diffs =
      std::none_of(changes.begin(), changes.end(), [](const ListedChange& change) { return change.diff.empty(); });
  if (has_all_diffs && interleaved.size() <= max_bytes) {
    return interleaved;
  }
  // All names first, then the diffs that fit.
  std::string names;
  std::string diffs;
  std::size_t names_left_out = 0;
  std::size_t diffs_left_out = 0;
  for (const ListedChange& change : changes) {
    const bool fits = names_left_out == 0 && names.size() + change.name.size() < max_bytes;
    names += fits ? "\n" + change.name : "";
    names_left_out += fits ? 0 : 1;
  }
  for (const ListedChange& change : changes) {
    const std::string diff = fmt::format("\n\n{}{}", change.path, change.diff);
    const bool fits = !change.diff.empty() && names.size() + diffs.size() + diff.size() <= max_bytes;
    diffs += fits ? diff : "";
    diffs_left_out += fits ? 0 : 1;
  }
  return fmt::format("\n[{}{} left out]", counted(diffs_left_out, "diff"),
                     names_left_out > 0 ? " and " + counted(names_left_out, "name") : "") +
         names + diffs;
}

ToolResult report_changes(const ToolRequest& call, const std::vector<sandbox::ChangedFile>& files, bool preview,
                          const std::vector<std::string>& remarks) {
  ToolResult result;
  result.structured = {{"files", json::array()}};
  std::uint64_t replacements = 0;
  std::vector<ListedChange> changes;
  std::vector<std::pair<std::string, std::string>> revisions;
  for (const sandbox::ChangedFile& file : files) {
    replacements += replacements_in(file);
    result.structured["files"].push_back(change_fields(file));
    const std::string path = ShownPaths(file.path, call.sandbox.files().base(), file.path).of("");
    const std::string facts = preview ? counted(replacements_in(file), "replacement")
                                      : fmt::format("revision {}{}", short_revision(file.revision),
                                                    file.change.empty() || !call.listed.contains("file_undo")
                                                        ? ""
                                                        : "; change " + short_change(file.change));
    revisions.emplace_back(path, file.revision);
    changes.push_back({path, with_notes(fmt::format("{} [{}]", path, facts), notes_of(file)),
                       file.diff.empty() ? "" : "\n" + to_valid_utf8(without_names(file.diff)).text});
  }
  result.text = preview ? fmt::format("Preview: {} in {}. Nothing was changed; call without preview to change {}.",
                                      counted(replacements, "replacement"), counted(files.size(), "file"),
                                      files.size() == 1 ? "it" : "them")
                        : call.hint(fmt::format("Edited {}. file_undo with filePath and change takes one back.",
                                                counted(files.size(), "file")));
  std::string end;
  for (const std::string& remark : remarks) {
    end += "\n" + remark;
  }
  const std::size_t most = k_default_reply_bytes - k_reply_reserve;
  result.text += list_changes(changes, most - std::min(most, end.size())) + end;
  result.facts = {{"revisions", as_many_as_fit(revisions)}};
  result.effect_complete = !preview;
  result.outcome = preview ? "" : counted(files.size(), "file") + " edited";
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
          {"change", {{"type", "string"}, {"description", "names the change, to undo it"}}},
          {"encoding", text},
          {"linesAdded", number},
          {"linesRemoved", number},
          {"diff", text},
          {"changedByOthers", {{"type", "boolean"}}},
          {"replacements", {{"type", "array"}, {"items", number}}},
          {"notes", {{"type", "array"}, {"items", text}}}};
}

std::vector<std::string> passed_over(const sandbox::SearchTotals& totals, const ShownPaths& paths,
                                     std::uint64_t binary) {
  std::vector<std::string> counts;
  const auto add = [&](std::uint64_t count, const char* kind) {
    if (count > 0) {
      counts.push_back(fmt::format("{} {}", count, kind));
    }
  };
  add(totals.ignored, "by .gitignore");
  add(totals.hidden, "hidden");
  add(binary, "binary");
  add(totals.unreadable, "unreadable");
  std::vector<std::string> lines;
  if (!counts.empty()) {
    lines.push_back(fmt::format("[passed over: {}]", fmt::join(counts, ", ")));
  }
  for (const std::string& path : totals.unreadable_paths) {
    lines.push_back("[could not read " + paths.of(path) + "]");
  }
  return lines;
}

void add_totals(const sandbox::SearchTotals& totals, const ShownPart& part, const char* unit, const ShownPaths& paths,
                ToolResult& result) {
  const bool more = totals.more || part.is_shortened;
  if (more) {
    const std::string note = fmt::format("[{} {}-{} of {}; offset: {} reads on]", unit, part.offset + 1,
                                         part.offset + part.count, totals.total, part.offset + part.count);
    result.text = (part.is_shortened ? note + "\n" : "") + result.text + "\n" + note;
  }
  for (const std::string& line : passed_over(totals, paths)) {
    result.text += "\n" + line;
  }
  result.structured["total"] = totals.total;
  result.structured["more"] = more;
  if (more) {
    result.structured["nextOffset"] = part.offset + part.count;
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

json entry_fields(const sandbox::FileEntry& entry, const std::string& path, bool details) {
  json fields;
  fields["path"] = path;
  fields["type"] = wire::name_of(entry.type);
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
  if (!context.wants_progress()) {
    return;
  }
  m_thread = std::thread([this, &context, message = std::move(message)] {
    MutexLock lock(m_mutex);
    while (!m_ended.wait_for(lock, k_heartbeat_interval, [&]() REQUIRES(m_mutex) { return m_over; })) {
      context.report_progress(message);
    }
  });
}

Heartbeat::~Heartbeat() {
  {
    const MutexLock lock(m_mutex);
    m_over = true;
  }
  m_ended.notify_all();
  if (m_thread.joinable()) {
    m_thread.join();
  }
}

}  // namespace dockbridge::tools
