#include "wire/process_state.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace dockbridge::wire {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> k_phases = {"running", "exited", "closed", "lost"};
constexpr std::array<std::string_view, 4> k_end_kinds = {"none", "exit", "signal", "unknown"};
constexpr std::array<std::string_view, 7> k_causes = {"none",   "timeout", "cancelled", "terminated",
                                                      "output", "memory",  "container"};

constexpr std::array<std::string_view, 3> k_facts = {"no", "yes", "unknown"};
/// Finds the value of an enumeration by its name, for `Field::word`.
template <typename Enum, std::size_t N>
auto named_in(const std::array<std::string_view, N>& names) {
  return [&names](std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
  };
}

const std::string& state_text(const Field& field) {
  if (field.text().size() > k_max_state_text) {
    field.fail_here();
  }
  return field.text();
}

std::int64_t time_ms(const Field& field) {
  return static_cast<std::int64_t>(field.number(k_max_time_ms));
}

}  // namespace

json to_json(const Usage& usage) {
  return json::array({usage.cpu_ms, usage.peak_memory_kib, usage.read_bytes, usage.written_bytes});
}

Usage Usage::from_json(const Field& field) {
  const auto numbers = field.elements();
  if (numbers.size() != 4) {
    field.fail_here();
  }
  const Usage usage{numbers[0].number(UINT64_MAX), numbers[1].number(UINT64_MAX), numbers[2].number(UINT64_MAX),
                    numbers[3].number(UINT64_MAX)};
  if (!is_plausible(usage)) {
    field.fail_here();
  }
  return usage;
}

Result<Usage> usage_from_json(const json& value) {
  return read_fields(value, ErrorCode::protocol_violation, Usage::from_json);
}

bool is_plausible(const Usage& usage) {
  constexpr auto k_max_time = static_cast<std::uint64_t>(k_max_time_ms);
  constexpr std::uint64_t k_max_kib = k_max_stream_bytes / 1024;
  return usage.cpu_ms <= k_max_time && usage.peak_memory_kib <= k_max_kib && usage.read_bytes <= k_max_stream_bytes &&
         usage.written_bytes <= k_max_stream_bytes;
}

json to_json(const StreamState& stream) {
  return json::array({stream.total, stream.head_end, stream.tail_start});
}

StreamState StreamState::from_json(const Field& field) {
  const auto offsets = field.elements();
  if (offsets.size() != 3) {
    field.fail_here();
  }
  const StreamState stream{offsets[0].number(k_max_stream_bytes), offsets[1].number(k_max_stream_bytes),
                           offsets[2].number(k_max_stream_bytes)};
  if (stream.head_end > stream.tail_start || stream.tail_start > stream.total) {
    field.fail_here();
  }
  return stream;
}

std::string_view name_of(Phase phase) {
  return k_phases.at(static_cast<std::size_t>(phase));
}
std::string_view name_of(EndKind kind) {
  return k_end_kinds.at(static_cast<std::size_t>(kind));
}
std::string_view name_of(Cause cause) {
  return k_causes.at(static_cast<std::size_t>(cause));
}
std::string_view name_of(WaitsForInput fact) {
  return k_facts.at(static_cast<std::size_t>(fact));
}

json to_json(const ProcessState& state) {
  json fields = {{"id", state.id},
                 {"phase", name_of(state.phase)},
                 {"end", name_of(state.end)},
                 {"endCode", state.end_code},
                 {"cause", name_of(state.cause)},
                 {"out", to_json(state.out)},
                 {"err", to_json(state.err)},
                 {"idleMs", state.idle_ms},
                 {"stdinOpen", state.stdin_open},
                 {"pid", state.pid},
                 {"startedAtMs", state.started_at_ms},
                 {"endedAtMs", state.ended_at_ms},
                 {"command", state.command},
                 {"cwd", state.cwd},
                 {"owner", state.owner},
                 {"rationale", state.rationale},
                 {"used", to_json(state.used)},
                 {"path", state.path}};
  if (state.running()) {
    fields["waitsForInput"] = name_of(state.waits_for_input);
    fields["paused"] = state.paused;
  }
  if (state.number > 0) {
    fields["number"] = state.number;
  }
  if (state.ran_ms) {
    fields["ranMs"] = *state.ran_ms;
  }
  if (state.children > 0) {
    fields["children"] = state.children;
  }
  if (state.terminal) {
    fields["terminal"] = true;
  }
  return fields;
}

ProcessState ProcessState::from_json(const Field& field) {
  ProcessState state;
  state.id = process_id_from(field.at("id"));
  if (const auto number = field.find("number")) {
    state.number = number->number(k_max_process_number);
  }
  state.phase = field.at("phase").word(named_in<Phase>(k_phases));
  state.end = field.at("end").word(named_in<EndKind>(k_end_kinds));
  state.end_code = static_cast<int>(field.at("endCode").number(k_max_end_code));
  state.cause = field.at("cause").word(named_in<Cause>(k_causes));
  state.out = StreamState::from_json(field.at("out"));
  state.err = StreamState::from_json(field.at("err"));
  state.idle_ms = field.at("idleMs").number(k_max_time_ms);
  state.stdin_open = field.at("stdinOpen").flag();
  if (const auto waits = field.find("waitsForInput")) {
    state.waits_for_input = waits->word(named_in<WaitsForInput>(k_facts));
  }
  if (const auto paused = field.find("paused")) {
    state.paused = paused->flag();
  }
  if (const auto ran = field.find("ranMs")) {
    state.ran_ms = time_ms(*ran);
  }
  if (const auto children = field.find("children")) {
    state.children = children->number(k_max_pid);
  }
  if (const auto terminal = field.find("terminal")) {
    state.terminal = terminal->flag();
  }
  state.rationale = state_text(field.at("rationale"));
  state.used = Usage::from_json(field.at("used"));
  state.pid = static_cast<std::int64_t>(field.at("pid").number(k_max_pid));
  state.started_at_ms = time_ms(field.at("startedAtMs"));
  state.ended_at_ms = time_ms(field.at("endedAtMs"));
  state.command = state_text(field.at("command"));
  state.cwd = state_text(field.at("cwd"));
  state.owner = state_text(field.at("owner"));
  state.path = state_text(field.at("path"));
  return state;
}

Result<ProcessState> process_state_from_json(const json& value) {
  return read_fields(value, ErrorCode::protocol_violation, ProcessState::from_json);
}

const std::string& process_id_from(const Field& field) {
  if (!is_process_id(field.text())) {
    field.fail_here();
  }
  return field.text();
}

bool is_process_id(std::string_view id) {
  constexpr std::string_view prefix = "proc_";
  if (!id.starts_with(prefix) || id.size() > 64) {
    return false;
  }
  id.remove_prefix(prefix.size());
  const auto split = id.find('_');
  if (split == std::string_view::npos || split == 0 || split + 1 == id.size()) {
    return false;
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto generation = id.substr(0, split);
  const auto token = id.substr(split + 1);
  return std::all_of(generation.begin(), generation.end(), digit) &&
         std::all_of(token.begin(), token.end(), [&](char c) { return digit(c) || letter(c); });
}

std::optional<std::uint64_t> process_number_in(std::string_view short_id) {
  if (!short_id.starts_with('p')) {
    return std::nullopt;
  }
  short_id.remove_prefix(1);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(short_id.data(), short_id.data() + short_id.size(), number);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == short_id.data() + short_id.size();
  // A leading zero is no other name for the same process.
  return is_whole && !short_id.starts_with('0') && number <= k_max_process_number ? std::optional(number)
                                                                                  : std::nullopt;
}

}  // namespace dockbridge::wire
