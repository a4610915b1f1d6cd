#include "agent/record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "util/file.hpp"
#include "wire/frame.hpp"
#include "wire/input_messages.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr int k_record_depth = 4;
constexpr int k_append_attempts = 3;
/// Maximum length of a keeper's socket name and of a boot id.
constexpr std::size_t k_max_name_bytes = 64;
constexpr std::size_t k_max_path_bytes = 4096;
constexpr std::size_t k_max_owner_bytes = 1024;
constexpr std::string_view k_id_mark = "\"id\":\"";

Result<void> append_line(int journal, const std::string& process, json fields) {
  fields["id"] = process;
  // Begins with a line end as well, because a full disk may have cut the line before it.
  const std::string line = "\n" + fields.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  // In one write, because other processes write as well. A line that was cut is written again from its start.
  for (int attempt = 0; attempt < k_append_attempts; ++attempt) {
    const ssize_t written = ::write(journal, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) {
      return {};
    }
    if (written < 0 && errno != EINTR) {
      return fail(errno_error("Cannot write to the journal"));
    }
  }
  return fail(ErrorCode::io_error, "Cannot write to the journal: no space left for a line");
}

Error damaged(const char* problem) {
  return {ErrorCode::record_damaged, std::string("The record of the process ") + problem};
}

/// Reads the fields of a record, which any process in the container may have written. A missing field is 0 or empty. A
/// wrong type or a number out of range makes the record damaged; `problem` then has the reason. Long texts are cut.
class RecordReader {
 public:
  explicit RecordReader(const json& fields) : m_fields(fields) {}

  [[nodiscard]] const char* problem() const { return m_problem; }

  std::int64_t number(const char* key, std::int64_t max, std::int64_t min = 0, std::int64_t fallback = 0) {
    const auto field = m_fields.find(key);
    return field == m_fields.end() ? fallback : number_in(*field, max, min);
  }
  /// May be negative, because the clock of a time namespace can have an offset.
  std::int64_t uptime(const char* key) { return number(key, wire::k_max_time_ms, -wire::k_max_time_ms); }
  std::string text(const char* key, std::size_t max) {
    const auto field = m_fields.find(key);
    return field == m_fields.end() ? "" : text_in(*field, max);
  }
  bool flag(const char* key) {
    const auto field = m_fields.find(key);
    if (field == m_fields.end() || field->is_boolean()) {
      return field != m_fields.end() && field->get<bool>();
    }
    m_problem = k_wrong_type;
    return false;
  }
  /// nullopt also for a kind of a later version: the process is then like any other.
  std::optional<wire::CodeSessionLabel> session() {
    const auto field = m_fields.find("session");
    auto label = field == m_fields.end()
                     ? fail(ErrorCode::record_damaged, "")
                     : wire::message_from<wire::CodeSessionLabel>(*field, ErrorCode::record_damaged);
    return label ? std::optional(std::move(*label)) : std::nullopt;
  }
  std::vector<TakenInput> taken() {
    std::vector<TakenInput> inputs;
    const auto field = m_fields.find("taken");
    if (field == m_fields.end()) {
      return inputs;
    }
    if (!field->is_array() || field->size() > k_max_taken_keys) {
      m_problem = k_wrong_type;
      return inputs;
    }
    for (const json& entry : *field) {
      if (!entry.is_array() || entry.size() != 5) {
        m_problem = k_wrong_type;
        return inputs;
      }
      const auto count = [&](std::size_t at) {
        return static_cast<std::uint64_t>(number_in(entry[at], k_max_count, 0));
      };
      inputs.push_back({text_in(entry[0], wire::k_digest_length), text_in(entry[1], wire::k_digest_length), count(2),
                        count(3), count(4)});
    }
    return inputs;
  }

 private:
  static constexpr const char* k_wrong_type = "has a field of the wrong type";
  static constexpr auto k_max_count = static_cast<std::int64_t>(wire::k_max_stream_bytes);

  std::int64_t number_in(const json& value, std::int64_t max, std::int64_t min) {
    if (!value.is_number_integer()) {
      m_problem = k_wrong_type;
      return min;
    }
    const bool is_beyond = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max);
    if (is_beyond || value.get<std::int64_t>() < min || value.get<std::int64_t>() > max) {
      m_problem = "has a number out of range";
      return min;
    }
    return value.get<std::int64_t>();
  }
  std::string text_in(const json& value, std::size_t max) {
    if (!value.is_string()) {
      m_problem = k_wrong_type;
      return "";
    }
    return utf8_prefix(value.get_ref<const std::string&>(), max);
  }

  const json& m_fields;
  const char* m_problem = nullptr;
};

/// Whether a text has the form of a keeper's socket name. Any other name is never connected to, because it could be a
/// path out of the directory.
bool is_keeper_name(std::string_view name) {
  return name.starts_with(k_keeper_prefix) && name.size() <= k_max_name_bytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

Status read_status(RecordReader& fields, const json& used) {
  constexpr auto k_last_end = static_cast<std::int64_t>(wire::EndKind::unknown);
  Status status;
  status.end = static_cast<wire::EndKind>(fields.number("end", k_last_end));
  status.end_code = static_cast<int>(fields.number("endCode", wire::k_max_end_code));
  status.cause = wire::cause_from(static_cast<int>(fields.number("cause", INT_MAX, INT_MIN)));
  status.ended = {fields.number("endedAtMs", wire::k_max_time_ms), fields.uptime("endedUptimeMs"),
                  fields.text("boot", k_max_name_bytes)};
  status.closed = fields.flag("closed");
  status.used = wire::read_fields(used, ErrorCode::protocol_violation, wire::Usage::from_json).value_or(wire::Usage{});
  status.taken = fields.taken();
  return status;
}

/// Calls `visitor` with the id and the text of each line that has an id.
template <typename Visitor>
void for_each_line(std::string_view journal, const Visitor& visitor) {
  while (!journal.empty()) {
    const std::string_view line = journal.substr(0, journal.find('\n'));
    // A search of the text is enough, because quotes inside a string are escaped.
    const std::size_t mark = line.find(k_id_mark);
    const std::size_t begin = mark + k_id_mark.size();
    if (mark != std::string_view::npos) {
      visitor(line.substr(begin, line.find('"', begin) - begin), line);
    }
    journal.remove_prefix(std::min(line.size() + 1, journal.size()));
  }
}

Result<Record> to_record(const std::vector<std::string_view>& lines) {
  json fields = json::object();
  for (const std::string_view line : lines) {
    // An incomplete line is being written, or was cut by a full disk.
    if (auto changes = wire::parse_bounded(line, k_record_depth)) {
      fields.update(*changes);
    }
  }
  const auto version = fields.find("v");
  if (version == fields.end() || !version->is_number_integer() || version->get<std::int64_t>() < 1) {
    return fail(damaged("has no version"));
  }
  RecordReader reader(fields);
  Record record;
  record.meta = {reader.text("command", k_command_preview_bytes),
                 reader.text("cwd", k_max_path_bytes),
                 reader.text("owner", k_max_owner_bytes),
                 reader.text("rationale", k_command_preview_bytes),
                 {reader.number("startedAtMs", wire::k_max_time_ms), reader.uptime("startedUptimeMs"),
                  reader.text("boot", k_max_name_bytes)},
                 reader.text("call", wire::k_digest_length),
                 static_cast<std::uint64_t>(reader.number("number", wire::k_max_process_number)),
                 reader.session()};
  if (fields.contains("pid")) {
    record.kept = {reader.number("pid", wire::k_max_pid), reader.text("keeper", k_max_name_bytes + 1),
                   static_cast<std::uint8_t>(reader.number("control", UINT8_MAX, 1, 1))};
  }
  if (fields.contains("end")) {
    record.status = read_status(reader, fields.value("used", json()));
  }
  if (reader.problem() != nullptr) {
    return fail(damaged(reader.problem()));
  }
  if (record.kept && !record.kept->keeper.empty() && !is_keeper_name(record.kept->keeper)) {
    return fail(damaged("has an invalid keeper name"));
  }
  return record;
}

}  // namespace

Result<void> append(int journal, const std::string& process, const Meta& meta) {
  json fields = {{"v", k_record_version},
                 {"command", meta.command},
                 {"cwd", meta.cwd},
                 {"owner", meta.owner},
                 {"rationale", meta.rationale},
                 {"startedAtMs", meta.started.unix_ms},
                 {"startedUptimeMs", meta.started.uptime_ms},
                 {"boot", meta.started.boot}};
  if (!meta.call.empty()) {
    fields["call"] = meta.call;
  }
  if (meta.number > 0) {
    fields["number"] = meta.number;
  }
  if (meta.session) {
    fields["session"] = wire::to_json(*meta.session);
  }
  return append_line(journal, process, std::move(fields));
}

Result<void> append(int journal, const std::string& process, const Kept& kept) {
  return append_line(journal, process, {{"pid", kept.pid}, {"keeper", kept.keeper}, {"control", kept.control}});
}

Result<void> append(int journal, const std::string& process, const Status& status) {
  json fields = {{"end", static_cast<int>(status.end)},     {"endCode", status.end_code},
                 {"cause", static_cast<int>(status.cause)}, {"endedAtMs", status.ended.unix_ms},
                 {"endedUptimeMs", status.ended.uptime_ms}, {"closed", status.closed},
                 {"used", wire::to_json(status.used)}};
  for (const TakenInput& taken : status.taken) {
    fields["taken"].push_back({taken.key, taken.call, taken.units, taken.seen_out, taken.seen_err});
  }
  return append_line(journal, process, std::move(fields));
}

void visit_records(std::string_view journal, const RecordVisitor& visitor) {
  std::map<std::string_view, std::vector<std::string_view>> processes;
  for_each_line(journal, [&](std::string_view process, std::string_view line) { processes[process].push_back(line); });
  for (const auto& [process, lines] : processes) {
    visitor(std::string(process), to_record(lines));
  }
}

Result<Record> find_record(std::string_view journal, const std::string& process) {
  std::vector<std::string_view> lines;
  for_each_line(journal, [&](std::string_view id, std::string_view line) {
    if (id == process) {
      lines.push_back(line);
    }
  });
  return to_record(lines);
}

std::string utf8_prefix(std::string_view text, std::size_t max) {
  if (text.size() <= max) {
    return std::string(text);
  }
  std::size_t end = max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return std::string(text.substr(0, end));
}

}  // namespace dockbridge::agent
