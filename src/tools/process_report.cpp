#include "tools/process_report.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <ctime>

namespace dockbridge::tools {

namespace {

using mcp::json;
using mcp::ordered_json;
using wire::Cause;
using wire::EndKind;
using wire::Phase;

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string cause_text(Cause cause) {
  switch (cause) {
    case Cause::none:
      return "";
    case Cause::timeout:
      return " (maximum run time exceeded)";
    case Cause::cancelled:
      return " (call cancelled)";
    case Cause::terminated:
      return "";  // the caller asked for it
    case Cause::output:
      return " (output limit exceeded)";
    case Cause::memory:
      return " (out of memory)";
    case Cause::container:
      return " (container stopped)";
  }
  return "";
}

std::string status_word(const wire::ProcessState& state) {
  switch (state.phase) {
    case Phase::running:
      return "running";
    case Phase::exited:
    case Phase::closed:
      return "completed";
    case Phase::lost:
      return "lost";
  }
  return "lost";
}

}  // namespace

std::string iso_time(std::int64_t unix_ms) {
  const std::time_t time = unix_ms / 1000;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, unix_ms % 1000);
}

std::string process_name(const wire::ProcessState& state) {
  return state.number > 0 ? fmt::format("p{}", state.number) : state.id;
}

std::string status_sentence(const wire::ProcessState& state) {
  const std::string name = process_name(state);
  if (state.phase == Phase::exited) {
    return fmt::format("{}: the command ended, processes it started are still running. {}", name, end_text(state));
  }
  if (!state.running()) {
    return fmt::format("{} {}. {}", name, state.phase == Phase::lost ? "is lost" : "ended", end_text(state));
  }
  if (state.paused) {
    return name + " is paused.";
  }
  if (state.waits_for_input == wire::WaitsForInput::yes) {
    return name + " waits for input.";
  }
  constexpr std::uint64_t k_min_silence_ms = 1000;
  return state.idle_ms < k_min_silence_ms
             ? name + " is running."
             : fmt::format("{} is running, no output for {:.0f} s.", name, static_cast<double>(state.idle_ms) / 1000);
}

json process_facts(const wire::ProcessState& state) {
  json facts = {{"processId", state.id}, {"status", status_word(state)}};
  if (state.end == EndKind::exit) {
    facts["exitCode"] = state.end_code;
  } else if (state.end == EndKind::signal) {
    facts["signal"] = signal_name(state.end_code);
  }
  return facts;
}

mcp::json status_facts(const std::vector<std::pair<std::string, std::string>>& words) {
  return {{"processes", as_many_as_fit(words)}};
}

std::string end_text(const wire::ProcessState& state, bool states_cause) {
  const std::string cause = states_cause ? cause_text(state.cause) : "";
  switch (state.end) {
    case EndKind::none:
      return "";
    case EndKind::exit:
      return fmt::format("Exit code: {}{}", state.end_code, cause);
    case EndKind::signal:
      return fmt::format("Killed by signal {} ({}){}", state.end_code, signal_name(state.end_code), cause);
    case EndKind::unknown:
      return fmt::format("Exit code: unknown ({}){}",
                         state.cause == Cause::container ? "container stopped" : "its supervisor was killed",
                         state.children == 0 ? "" : fmt::format("; {} of its processes still run", state.children));
  }
  return "";
}

json process_fields(const wire::ProcessState& state) {
  json fields = process_facts(state);
  if (state.cause != Cause::none) {
    fields["cause"] = name_of(state.cause);
  }
  if (state.session) {
    fields["sessionKind"] = wire::name_of(state.session->kind);
    if (!state.session->name.empty()) {
      fields["session"] = state.session->name;
    }
  }
  fields["childrenRunning"] = state.phase == Phase::exited;
  fields["command"] = state.command;
  fields["cwd"] = state.cwd;
  fields["pid"] = state.pid;
  fields["startedAt"] = iso_time(state.started_at_ms);
  if (state.ended_at_ms > 0) {
    fields["endedAt"] = iso_time(state.ended_at_ms);
    fields["durationMs"] = std::max<std::int64_t>(0, state.ran_ms.value_or(state.ended_at_ms - state.started_at_ms));
  }
  fields["idleMs"] = state.running() ? state.idle_ms : 0;
  if (state.running()) {
    fields["waitsForInput"] = name_of(state.waits_for_input);
    fields["paused"] = state.paused;
  }
  fields["tty"] = state.terminal;
  fields["rationale"] = state.rationale;
  fields["cpuMs"] = state.used.cpu_ms;
  fields["peakMemoryBytes"] = state.used.peak_memory_kib * 1024;
  fields["diskReadBytes"] = state.used.read_bytes;
  fields["diskWrittenBytes"] = state.used.written_bytes;
  if (state.running() || state.children > 0) {
    fields["processCount"] = state.children;
  }
  if (state.out.total > 0) {
    fields["stdoutFile"] = state.path + ".out";
  }
  if (state.err.total > 0) {
    fields["stderrFile"] = state.path + ".err";
  }
  fields["stdoutBytes"] = state.out.total;
  fields["stderrBytes"] = state.err.total;
  return fields;
}

ordered_json process_schema() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  const ordered_json flag = {{"type", "boolean"}};
  const auto described = [](ordered_json schema, const char* description) {
    schema["description"] = description;
    return schema;
  };
  return {
      {"processId", text},
      {"status", {{"type", "string"}, {"enum", {"running", "completed", "lost"}}}},
      {"exitCode", number},
      {"signal", text},
      {"cause",
       described(text, "why it ended, if not by itself: timeout, cancelled, terminated, output, memory, container")},
      {"session", described(text, "its name, if it is a Python session or a shell that keeps its state")},
      {"sessionKind", text},
      {"childrenRunning", described(flag, "the command has ended, something it started has not")},
      {"command", text},
      {"rationale", text},
      {"cwd", text},
      {"pid", number},
      {"tty", flag},
      {"startedAt", text},
      {"endedAt", text},
      {"durationMs", number},
      {"idleMs", described(number, "since the last output or input")},
      {"waitsForInput", {{"type", "string"}, {"enum", {"yes", "no", "unknown"}}}},
      {"paused", flag},
      {"processCount", described(number, "live processes of its tree")},
      {"cpuMs", number},
      {"peakMemoryBytes", described(number, "of the largest process of the tree")},
      {"diskReadBytes", number},
      {"diskWrittenBytes", number},
      {"stdoutBytes", number},
      {"stderrBytes", number},
      {"stdoutFile", described(text, "in the container; the output begins after a header of 4096 bytes")},
      {"stderrFile", text},
  };
}

}  // namespace dockbridge::tools
