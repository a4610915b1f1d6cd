#include "tools/compat_tools.hpp"

#include <fmt/format.h>

#include <array>

#include "tools/output.hpp"
#include "tools/tool_shape.hpp"
#include "util/random.hpp"

namespace dockbridge::tools {

namespace compat {

using mcp::json;
using mcp::ordered_json;
using mcp::ToolResult;

constexpr std::size_t k_name_length = 8;

ordered_json text_schema(const char* description = nullptr) {
  ordered_json schema = {{"type", "string"}};
  if (description != nullptr) {
    schema["description"] = description;
  }
  return schema;
}

/// Calls the handler of `tool` with other arguments, unless those of this call are wrong.
ToolResult forward(const ToolRequest& call, const ToolCode& tool, json values) {
  const std::string rationale = call.arguments.text("rationale").value_or("");
  call.arguments.keep_unlisted("rationale");
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  if (!rationale.empty()) {
    values["rationale"] = rationale;
  }
  Settings settings = call.settings;
  settings.rationale_required = false;
  Arguments arguments(values);
  return tool.call(
      {call.sandbox, settings, arguments, call.context, call.listed, call.began, call.shown, call.notices});
}

/// One word of a shell command.
std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  }
  return text + "'";
}

ordered_json command_schema(const Settings&) {
  return object_schema({{"command", text_schema()}}, {"command"});
}

ordered_json shell_schema(const Settings&) {
  return object_schema({{"command", text_schema()},
                        {"shell", text_schema("Program that runs it, such as /bin/sh")},
                        {"working_dir", text_schema()}},
                       {"command"});
}

ToolResult shell(const ToolRequest& call) {
  std::string command = call.arguments.required_text("command");
  const auto program = call.arguments.text("shell");
  if (program && !program->empty()) {
    command = fmt::format("exec {} -c {}", shell_word(*program), shell_word(command));
  }
  json values = {{"command", std::move(command)}};
  if (const auto directory = call.arguments.text("working_dir")) {
    values["cwd"] = *directory;
  }
  return forward(call, k_execute_command, std::move(values));
}

ordered_json shell_status_schema(const Settings&) {
  return object_schema({{"task_id", text_schema("Such as p3")}}, {"task_id"});
}

ToolResult shell_status(const ToolRequest& call) {
  return forward(call, k_check_process, {{"processId", call.arguments.required_text("task_id")}});
}

ordered_json python_session_schema(const Settings&) {
  return object_schema({{"code", text_schema()}, {"session_id", text_schema("Any name. Default: a new session")}},
                       {"code"});
}

ToolResult python_session(const ToolRequest& call) {
  json values = {{"code", call.arguments.required_text("code")}};
  const auto given = call.arguments.text("session_id");
  const bool is_new = !given || given->empty();
  const std::string name = is_new ? "s" + random_token(k_name_length) : *given;
  values["session"] = name;
  ToolResult result = forward(call, k_python, std::move(values));
  if (is_new) {
    result.text = with_notes(std::move(result.text), {fmt::format("session_id: \"{}\" continues this session", name)});
  }
  return result;
}

/// That server has one kernel for all calls.
ToolResult execute_python_code(const ToolRequest& call) {
  return forward(call, k_python, {{"code", call.arguments.required_text("command")}, {"session", "coderunner"}});
}

}  // namespace compat

std::span<const CompatRow> compat_table() {
  // Not at namespace scope: these use constants of other files.
  static const ToolCode k_shell{compat::shell_schema, k_execute_command.output_schema, compat::shell};
  static const ToolCode k_shell_status{compat::shell_status_schema, k_check_process.output_schema,
                                       compat::shell_status};
  static const ToolCode k_python_session{compat::python_session_schema, k_python.output_schema, compat::python_session};
  static const ToolCode k_execute_python_code{compat::command_schema, k_python.output_schema,
                                              compat::execute_python_code};
  static const std::array rows = {
      CompatRow{Compat::repl,
                {.name = "shell",
                 .title = "Run a shell command",
                 .description = "Run a shell command and return its output and exit code. A long one continues in the "
                                "background, and shell_status shows it.",
                 .code = &k_shell,
                 .annotations = {.destructive = true, .open_world = true}}},
      CompatRow{Compat::repl,
                {.name = "shell_status",
                 .title = "Status of a command",
                 .description = "Status, exit code and new output of a command that shell has left running.",
                 .code = &k_shell_status,
                 .annotations = {.read_only = true, .idempotent = true}}},
      CompatRow{Compat::repl,
                {.name = "python_session",
                 .title = "Run Python in a session",
                 .description = "Run Python code in a session that keeps variables and imports.",
                 .code = &k_python_session,
                 .annotations = {.destructive = true, .open_world = true}}},
      CompatRow{Compat::coderunner,
                {.name = "execute_python_code",
                 .title = "Run Python",
                 .description = "Run Python code in a session that keeps variables and imports. Returns its output, "
                                "the value of the last expression and plots.",
                 .code = &k_execute_python_code,
                 .annotations = {.destructive = true, .open_world = true}}},
  };
  return rows;
}

}  // namespace dockbridge::tools
