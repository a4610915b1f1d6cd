#include "tools/wait_arguments.hpp"

#include <fmt/format.h>

#include "tools/tool_shape.hpp"

namespace dockbridge::tools {

namespace {

constexpr double k_max_timeout_ms = 24.0 * 3600 * 1000;
constexpr double k_max_idle_seconds = 3600;
constexpr std::int64_t k_max_port = 65535;

/// `timeoutMs`, the name in other tools.
std::optional<milliseconds> read_milliseconds(Arguments& arguments) {
  const auto ms = arguments.number("timeoutMs", 0, k_max_timeout_ms);
  arguments.keep_unlisted("timeoutMs");
  return ms ? std::optional(milliseconds(static_cast<std::int64_t>(*ms))) : std::nullopt;
}

}  // namespace

std::optional<Timeout> read_timeout(Arguments& arguments, double most_seconds) {
  const auto given = arguments.number("timeout", 0, k_max_timeout_ms);
  if (const auto ms = read_milliseconds(arguments)) {
    return Timeout{*ms, false};
  }
  if (!given) {
    return std::nullopt;
  }
  const bool is_ms = *given > most_seconds;
  return Timeout{milliseconds(static_cast<std::int64_t>(is_ms ? *given : *given * 1000)), is_ms};
}

void note_milliseconds(const std::optional<Timeout>& timeout, std::vector<std::string>& notes) {
  if (timeout && timeout->was_milliseconds) {
    notes.push_back(
        fmt::format("timeout was read as milliseconds ({:g} s)", static_cast<double>(timeout->value.count()) / 1000));
  }
}

mcp::ordered_json wait_for_schema() {
  const mcp::ordered_json flag = {{"type", "boolean"}};
  mcp::ordered_json schema =
      object_schema({{"pattern", {{"type", "string"}, {"description", "Regex (RE2) for a line of output"}}},
                     {"port", {{"type", "integer"}, {"description", "TCP port that is listened on"}}},
                     {"idle", {{"type", "number"}, {"description", "Seconds without output"}}},
                     {"input", flag},
                     {"exit", flag}},
                    {});
  schema["description"] = "Return when one of these happens, or at exit.";
  return schema;
}

bool read_wait_for(Arguments& arguments, wire::WaitCondition& until, bool heeds_prompt) {
  auto wanted = arguments.object("waitFor");
  if (!wanted) {
    return false;
  }
  wanted->flag("exit", true);
  until.pattern = wanted->text("pattern");
  if (const auto port = wanted->integer("port", 1, k_max_port)) {
    until.port = static_cast<std::uint16_t>(*port);
  }
  until.idle = wanted->duration("idle", 0, k_max_idle_seconds);
  until.input = wanted->flag("input", heeds_prompt && (until.pattern || until.port));
  arguments.adopt(*wanted);
  return true;
}

}  // namespace dockbridge::tools
