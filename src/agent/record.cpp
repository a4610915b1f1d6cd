#include "agent/record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "util/file.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr int k_record_depth = 4;
constexpr int k_append_attempts = 3;
constexpr std::string_view k_id_mark = "\"id\":\"";

Result<void> append_line(int journal, const std::string& process, json fields) {
  fields["id"] = process;
  // With a line's end before it as well: a full disk may have left half a line there.
  const std::string line = "\n" + fields.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  // In one piece, because others write as well; what was cut short is written once more from the start.
  for (int attempt = 0; attempt < k_append_attempts; ++attempt) {
    const ssize_t written = ::write(journal, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) {
      return {};
    }
    if (written < 0 && errno != EINTR) {
      return fail(errno_error("write to the journal"));
    }
  }
  return fail("io_error", "write to the journal: there was no room for a whole line");
}

Error damaged(const char* what) {
  return {"record_damaged", std::string("the record of the process ") + what};
}

std::vector<TakenInput> read_taken(const json& fields) {
  std::vector<TakenInput> taken;
  for (const json& entry : fields.value("taken", json::array())) {
    taken.push_back({entry.at(0).get<std::string>(), entry.at(1).get<std::string>(), entry.at(2).get<std::uint64_t>(),
                     entry.at(3).get<std::uint64_t>(), entry.at(4).get<std::uint64_t>()});
  }
  return taken;
}

Result<Status> read_status(const json& fields) {
  const int end = fields.value("end", 0);
  const int cause = fields.value("cause", 0);
  if (end < 0 || end > static_cast<int>(wire::EndKind::unknown)) {
    return fail(damaged("has a value that is not known"));
  }
  return Status{static_cast<wire::EndKind>(end),
                fields.value("endCode", 0),
                wire::cause_from(cause),
                {fields.value("endedAtMs", std::int64_t{}), fields.value("endedUptimeMs", std::int64_t{}),
                 fields.value("boot", "")},
                fields.value("closed", false),
                wire::usage_from_json(fields.value("used", json())).value_or(wire::Usage{}),
                read_taken(fields)};
}

/// Calls `visitor` with each line that has an id, and with that.
template <typename Visitor>
void for_each_line(std::string_view journal, const Visitor& visitor) {
  while (!journal.empty()) {
    const std::string_view line = journal.substr(0, journal.find('\n'));
    // Found as it is written: inside a string the quotes would be escaped.
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
    // What is not a whole line is being written, or the disk was too full for it.
    if (auto news = wire::parse_bounded(line, k_record_depth)) {
      fields.update(*news);
    }
  }
  try {
    const auto version = fields.find("v");
    if (version == fields.end() || !version->is_number_integer() || version->get<std::int64_t>() < 1) {
      return fail(damaged("has no version"));
    }
    Record record;
    record.meta = {fields.value("command", ""),
                   fields.value("cwd", ""),
                   fields.value("owner", ""),
                   fields.value("rationale", ""),
                   {fields.value("startedAtMs", std::int64_t{}), fields.value("startedUptimeMs", std::int64_t{}),
                    fields.value("boot", "")},
                   fields.value("call", "")};
    if (fields.contains("pid")) {
      record.kept = {fields.value("pid", std::int64_t{}), fields.value("keeper", ""),
                     fields.value("control", std::uint8_t{1})};
    }
    if (fields.contains("end")) {
      auto status = read_status(fields);
      if (!status) {
        return fail(status.error());
      }
      record.status = *status;
    }
    return record;
  } catch (const json::exception&) {
    return fail(damaged("has a field of the wrong type"));
  }
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
  for_each_line(journal, [&](std::string_view whose, std::string_view line) {
    if (whose == process) {
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
