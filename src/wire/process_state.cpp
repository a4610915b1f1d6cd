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
constexpr std::array<std::string_view, 7> k_happenings = {"ended", "grew",  "pattern", "port",
                                                          "idle",  "input", "nothing"};

template <typename Enum, std::size_t N>
std::optional<Enum> enum_from(const json& value, const std::array<std::string_view, N>& names) {
  if (!value.is_string()) {
    return std::nullopt;
  }
  const auto at = std::find(names.begin(), names.end(), value.get_ref<const std::string&>());
  return at == names.end() ? std::nullopt : std::optional(static_cast<Enum>(at - names.begin()));
}

template <typename Enum, std::size_t N>
bool parse_enum(const json& value, const char* key, const std::array<std::string_view, N>& names, Enum& out) {
  const auto found = value.find(key);
  const auto parsed = found == value.end() ? std::nullopt : enum_from<Enum>(*found, names);
  out = parsed.value_or(out);
  return parsed.has_value();
}

/// A number from 0 to `most`.
template <typename Number>
bool parse_number(const json& value, const char* key, std::uint64_t most, Number& out) {
  const auto found = value.find(key);
  const bool is_number = found != value.end() && found->is_number_integer() &&
                         (found->is_number_unsigned() || found->get<std::int64_t>() >= 0);
  if (!is_number || found->get<std::uint64_t>() > most) {
    return false;
  }
  out = static_cast<Number>(found->get<std::uint64_t>());
  return true;
}

bool parse_flag(const json& value, const char* key, bool& out) {
  const auto found = value.find(key);
  if (found == value.end() || !found->is_boolean()) {
    return false;
  }
  out = found->get<bool>();
  return true;
}

bool parse_string(const json& value, const char* key, std::string& out) {
  const auto found = value.find(key);
  if (found == value.end() || !found->is_string() || found->get_ref<const std::string&>().size() > k_max_state_text) {
    return false;
  }
  out = found->get<std::string>();
  return true;
}

bool parse_stream(const json& value, const char* key, StreamState& out) {
  const auto found = value.find(key);
  const auto stream = found == value.end() ? fail(ErrorCode::protocol_violation, "") : stream_state_from_json(*found);
  if (stream) {
    out = *stream;
  }
  return stream.has_value();
}

bool parse_usage(const json& value, const char* key, Usage& out) {
  const auto found = value.find(key);
  const auto usage = found == value.end() ? fail(ErrorCode::protocol_violation, "") : usage_from_json(*found);
  if (usage) {
    out = *usage;
  }
  return usage.has_value();
}

}  // namespace

json to_json(const Usage& usage) {
  return json::array({usage.cpu_ms, usage.peak_memory_kib, usage.read_bytes, usage.written_bytes});
}

Result<Usage> usage_from_json(const json& value) {
  const auto is_number = [](const json& number) { return number.is_number_unsigned(); };
  if (!value.is_array() || value.size() != 4 || !std::all_of(value.begin(), value.end(), is_number)) {
    return fail(ErrorCode::protocol_violation, "The agent sent a malformed usage");
  }
  const Usage usage{value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>(), value[2].get<std::uint64_t>(),
                    value[3].get<std::uint64_t>()};
  return is_plausible(usage) ? Result<Usage>(usage)
                             : fail(ErrorCode::protocol_violation, "The agent sent a usage that is out of range");
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

Result<StreamState> stream_state_from_json(const json& value) {
  const auto is_offset = [](const json& number) { return number.is_number_unsigned(); };
  if (value.is_array() && value.size() == 3 && std::all_of(value.begin(), value.end(), is_offset)) {
    const StreamState stream{value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>(),
                             value[2].get<std::uint64_t>()};
    if (stream.head_end <= stream.tail_start && stream.tail_start <= stream.total &&
        stream.total <= k_max_stream_bytes) {
      return stream;
    }
  }
  return fail(ErrorCode::protocol_violation, "The agent sent a malformed stream state");
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
std::string_view name_of(Happened what) {
  return k_happenings.at(static_cast<std::size_t>(what));
}

std::optional<Happened> happened_from(const json& value) {
  return enum_from<Happened>(value, k_happenings);
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

Result<ProcessState> process_state_from_json(const json& value) {
  ProcessState state;
  state.ran_ms = value.is_object() && value.contains("ranMs") ? std::optional<std::int64_t>(0) : std::nullopt;
  const bool good =
      value.is_object() && parse_string(value, "id", state.id) && is_process_id(state.id) &&
      (!value.contains("number") || parse_number(value, "number", k_max_process_number, state.number)) &&
      parse_enum(value, "phase", k_phases, state.phase) && parse_enum(value, "end", k_end_kinds, state.end) &&
      parse_number(value, "endCode", k_max_end_code, state.end_code) &&
      parse_enum(value, "cause", k_causes, state.cause) && parse_stream(value, "out", state.out) &&
      parse_stream(value, "err", state.err) && parse_number(value, "idleMs", k_max_time_ms, state.idle_ms) &&
      parse_flag(value, "stdinOpen", state.stdin_open) &&
      (!value.contains("waitsForInput") || parse_enum(value, "waitsForInput", k_facts, state.waits_for_input)) &&
      (!value.contains("paused") || parse_flag(value, "paused", state.paused)) &&
      (!state.ran_ms || parse_number(value, "ranMs", k_max_time_ms, *state.ran_ms)) &&
      (!value.contains("children") || parse_number(value, "children", k_max_pid, state.children)) &&
      parse_string(value, "rationale", state.rationale) && parse_usage(value, "used", state.used) &&
      (!value.contains("terminal") || parse_flag(value, "terminal", state.terminal)) &&
      parse_number(value, "pid", k_max_pid, state.pid) &&
      parse_number(value, "startedAtMs", k_max_time_ms, state.started_at_ms) &&
      parse_number(value, "endedAtMs", k_max_time_ms, state.ended_at_ms) &&
      parse_string(value, "command", state.command) && parse_string(value, "cwd", state.cwd) &&
      parse_string(value, "owner", state.owner) && parse_string(value, "path", state.path);
  if (!good) {
    return fail(ErrorCode::protocol_violation, "The agent sent a malformed process state");
  }
  return state;
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
