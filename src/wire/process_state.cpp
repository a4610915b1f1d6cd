#include "wire/process_state.hpp"

#include <algorithm>
#include <charconv>

namespace dockbridge::wire {

namespace {

using nlohmann::json;

const std::string& state_text(const Field& field) {
  if (field.text().size() > k_max_state_text) {
    field.fail_here();
  }
  return field.text();
}

}  // namespace

json to_json(const Usage& usage) {
  return json::array({usage.cpu_ms, usage.peak_memory_kib, usage.read_bytes, usage.written_bytes});
}

Usage Usage::from_json(const Field& field) {
  const auto [cpu_ms, peak_memory_kib, read_bytes, written_bytes] = field.numbers<4>();
  const Usage usage{cpu_ms, peak_memory_kib, read_bytes, written_bytes};
  if (!is_plausible(usage)) {
    field.fail_here();
  }
  return usage;
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
  const auto [total, head_end, tail_start] = field.numbers<3>(k_max_stream_bytes);
  if (head_end > tail_start || tail_start > total) {
    field.fail_here();
  }
  return {total, head_end, tail_start};
}

Offsets OffsetsAtMost::operator()(const Field& field) const {
  const auto [out, err] = field.numbers<2>(max);
  return {out, err};
}

void ProcessState::visit(Codec& codec) {
  const AtMost time{static_cast<std::uint64_t>(k_max_time_ms)};
  codec("id", id, process_id_from);
  codec.optional("number", number, AtMost{k_max_process_number});
  codec("phase", phase);
  codec("end", end);
  codec("endCode", end_code, AtMost{k_max_end_code});
  codec("cause", cause);
  codec("out", out);
  codec("err", err);
  if (codec.is_reading() || side.total > 0) {
    codec.lenient("side", side);
  }
  codec("idleMs", idle_ms, time);
  codec("stdinOpen", stdin_open);
  if (codec.is_reading() || running()) {
    codec.lenient("waitsForInput", waits_for_input);
    codec.lenient("paused", paused);
  }
  codec.optional("terminal", terminal);
  codec("pid", pid, AtMost{k_max_pid});
  codec("startedAtMs", started_at_ms, time);
  codec("endedAtMs", ended_at_ms, time);
  codec.optional("ranMs", ran_ms, time);
  codec("command", command, state_text);
  codec("cwd", cwd, state_text);
  codec("owner", owner, state_text);
  codec("rationale", rationale, state_text);
  codec("used", used);
  codec.optional("children", children, AtMost{k_max_pid});
  codec("path", path, state_text);
  codec.optional("session", session);
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
  // A leading zero is rejected, so that each process has one short id.
  return is_whole && !short_id.starts_with('0') && number <= k_max_process_number ? std::optional(number)
                                                                                  : std::nullopt;
}

}  // namespace dockbridge::wire
