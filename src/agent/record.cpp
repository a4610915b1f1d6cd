#include "agent/record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "util/file.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

constexpr int k_record_depth = 4;

Result<json> read_record(int directory_fd, const char* name) {
  const auto text = read_file_at(directory_fd, name, k_max_record_bytes);
  if (!text) {
    return fail(text.error());
  }
  auto record = wire::parse_bounded(*text, k_record_depth);
  const auto version = record ? record->find("v") : json::iterator();
  if (!record || version == record->end() || !version->is_number_integer() || version->get<std::int64_t>() < 1) {
    return fail("record_damaged", std::string("the process record '") + name + "' cannot be read");
  }
  return record;
}

std::string dump(const json& record) {
  return record.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

Result<void> write_meta(int directory_fd, const Meta& meta) {
  return replace_file_at(directory_fd, "meta",
                         dump({{"v", k_record_version},
                               {"command", meta.command},
                               {"cwd", meta.cwd},
                               {"owner", meta.owner},
                               {"rationale", meta.rationale},
                               {"pid", meta.pid},
                               {"startedAtMs", meta.started_at_ms}}));
}

Result<Meta> read_meta(int directory_fd) {
  const auto record = read_record(directory_fd, "meta");
  if (!record) {
    return fail(record.error());
  }
  try {
    return Meta{record->value("command", ""),         record->value("cwd", ""),
                record->value("owner", ""),           record->value("rationale", ""),
                record->value("pid", std::int64_t{}), record->value("startedAtMs", std::int64_t{})};
  } catch (const json::exception&) {
    return fail("record_damaged", "the process record 'meta' has a field of the wrong type");
  }
}

Result<void> write_status(int directory_fd, const Status& status) {
  return replace_file_at(directory_fd, "status",
                         dump({{"v", k_record_version},
                               {"end", static_cast<int>(status.end)},
                               {"endCode", status.end_code},
                               {"cause", static_cast<int>(status.cause)},
                               {"endedAtMs", status.ended_at_ms},
                               {"closed", status.closed}}));
}

Result<std::optional<Status>> read_status(int directory_fd) {
  if (::faccessat(directory_fd, "status", F_OK, 0) != 0) {
    return std::nullopt;
  }
  const auto record = read_record(directory_fd, "status");
  if (!record) {
    return fail(record.error());
  }
  try {
    const int end = record->value("end", 0);
    const int cause = record->value("cause", 0);
    if (end < 0 || end > static_cast<int>(wire::EndKind::unknown) || cause < 0 ||
        cause > static_cast<int>(wire::Cause::terminated)) {
      return fail("record_damaged", "the process record 'status' has a value that is not known");
    }
    return Status{static_cast<wire::EndKind>(end), record->value("endCode", 0), static_cast<wire::Cause>(cause),
                  record->value("endedAtMs", std::int64_t{}), record->value("closed", false)};
  } catch (const json::exception&) {
    return fail("record_damaged", "the process record 'status' has a field of the wrong type");
  }
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
