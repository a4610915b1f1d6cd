#include "tools/process_report.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <ctime>

#include "util/text.hpp"

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
      return " (its maximum run time was over)";
    case Cause::cancelled:
      return " (the call was cancelled)";
    case Cause::terminated:
      return " (it was told to end)";
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

std::string iso_time(std::int64_t unix_ms) {
  const std::time_t time = unix_ms / 1000;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, unix_ms % 1000);
}

std::string without_final_newline(std::string text) {
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

}  // namespace

std::string output_text(const ShownOutput& output) {
  const std::string out = without_final_newline(output.out.text);
  const std::string err = without_final_newline(output.err.text);
  if (!out.empty() && !err.empty()) {
    return fmt::format("STDOUT:\n{}\n\nSTDERR:\n{}", out, err);
  }
  return err.empty() ? out : "STDERR:\n" + err;
}

std::string end_text(const wire::ProcessState& state) {
  switch (state.end) {
    case EndKind::none:
      return "";
    case EndKind::exit:
      return fmt::format("Exit code: {}{}", state.end_code, cause_text(state.cause));
    case EndKind::signal:
      return fmt::format("Killed by signal {} ({}){}", state.end_code, signal_name(state.end_code),
                         cause_text(state.cause));
    case EndKind::unknown:
      return "Exit code: unknown (the container stopped, or the process's keeper was killed)";
  }
  return "";
}

std::vector<std::string> output_notes(const ShownOutput& output) {
  std::vector<std::string> notes;
  const std::size_t replaced = output.out.replaced + output.err.replaced;
  if (replaced > 0) {
    notes.push_back(fmt::format("{} bytes that are not UTF-8 are shown as U+FFFD", replaced));
  }
  return notes;
}

json process_fields(const wire::ProcessState& state) {
  json fields = {{"processId", state.id}, {"status", status_word(state)}};
  if (state.end == EndKind::exit) {
    fields["exitCode"] = state.end_code;
  } else if (state.end == EndKind::signal) {
    fields["signal"] = signal_name(state.end_code);
  }
  if (state.cause != Cause::none) {
    fields["cause"] = name_of(state.cause);
  }
  fields["childrenRunning"] = state.phase == Phase::exited;
  fields["command"] = state.command;
  fields["cwd"] = state.cwd;
  fields["pid"] = state.pid;
  fields["startedAt"] = iso_time(state.started_at_ms);
  if (state.ended_at_ms > 0) {
    fields["endedAt"] = iso_time(state.ended_at_ms);
    fields["durationMs"] = std::max<std::int64_t>(0, state.ended_at_ms - state.started_at_ms);
  }
  fields["idleMs"] = state.running() ? state.idle_ms : 0;
  fields["stdoutBytes"] = state.out.total;
  fields["stderrBytes"] = state.err.total;
  return fields;
}

void add_output_fields(json& fields, const ShownOutput& output) {
  fields["stdout"] = output.out.text;
  fields["stderr"] = output.err.text;
  fields["stdoutLeftOut"] = output.out.left_out;
  fields["stderrLeftOut"] = output.err.left_out;
  fields["cursor"] = output.cursor().text();
}

ordered_json process_schema() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  return {{"processId", text},    {"status", {{"type", "string"}, {"enum", {"running", "completed", "lost"}}}},
          {"exitCode", number},   {"signal", text},
          {"cause", text},        {"childrenRunning", {{"type", "boolean"}}},
          {"command", text},      {"cwd", text},
          {"pid", number},        {"startedAt", text},
          {"endedAt", text},      {"durationMs", number},
          {"idleMs", number},     {"stdoutBytes", number},
          {"stderrBytes", number}};
}

void add_output_schema(ordered_json& properties) {
  properties["stdout"] = {{"type", "string"}};
  properties["stderr"] = {{"type", "string"}};
  properties["stdoutLeftOut"] = {{"type", "integer"}, {"description", "bytes not shown in stdout"}};
  properties["stderrLeftOut"] = {{"type", "integer"}, {"description", "bytes not shown in stderr"}};
  properties["cursor"] = {{"type", "string"}, {"description", "pass as since to check_process to read on from here"}};
}

ordered_json object_schema(ordered_json properties, const std::vector<std::string>& required) {
  ordered_json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) {
    schema["required"] = required;
  }
  return schema;
}

ordered_json result_schema(ordered_json properties) {
  const ordered_json text = {{"type", "string"}};
  properties["error"] =
      object_schema({{"code", text}, {"message", text}, {"nextStep", text}}, {"code", "message", "nextStep"});
  return object_schema(std::move(properties), {});
}

ordered_json arguments_schema(ordered_json properties, std::vector<std::string> required, const Settings& settings) {
  properties["rationale"] = {{"type", "string"},
                             {"description", "Why you make this call, in one sentence; it goes to the audit log."}};
  if (settings.rationale_required) {
    required.emplace_back("rationale");
  }
  return object_schema(std::move(properties), required);
}

void add_output_arguments(ordered_json& properties) {
  properties["maxOutput"] = {
      {"type", "integer"},
      {"minimum", k_least_max_output},
      {"maximum", k_largest_max_output},
      {"description",
       fmt::format("Bytes of output in the reply (default {}); the middle is left out beyond it, and can "
                   "be read with check_process and since.",
                   k_default_max_output)}};
  properties["raw"] = {{"type", "boolean"}, {"description", "Keep colour codes and carriage returns."}};
}

OutputRequest read_output_arguments(Arguments& arguments) {
  OutputRequest request;
  request.raw = arguments.flag("raw", false);
  request.max_bytes = static_cast<std::size_t>(
      arguments.integer("maxOutput", k_least_max_output, k_largest_max_output).value_or(k_default_max_output));
  return request;
}

std::string read_rationale(Arguments& arguments, const Settings& settings) {
  return settings.rationale_required ? arguments.required_text("rationale") : arguments.text("rationale").value_or("");
}

std::vector<std::string> unknown_argument_notes(const Arguments& arguments) {
  std::string names;
  for (const std::string& name : arguments.unknown()) {
    names += (names.empty() ? "" : ", ") + printable_line(name, 60);
  }
  return names.empty() ? std::vector<std::string>{}
                       : std::vector{"ignored arguments this tool does not know: " + names};
}

std::string with_notes(std::string text, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    text += "\nNote: " + note;
  }
  return text;
}

Result<sandbox::Snapshot> find_own(sandbox::Sandbox& sandbox, const std::string& process, const std::string& owner) {
  auto snapshot = sandbox.wait(process, milliseconds{0}, std::nullopt, {});
  if (snapshot && snapshot->state.owner != owner) {
    return fail("no_such_process", "there is no process " + process,
                "check_process without a processId lists those that can be read");
  }
  return snapshot;
}

}  // namespace dockbridge::tools
