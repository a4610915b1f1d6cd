#include "tools/process_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cell_report.hpp"
#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::json;
using wire::EndKind;
using wire::Phase;

constexpr std::size_t k_finished_in_list = 5;
constexpr std::size_t k_max_command_bytes = 80;

/// "0.4 s" or "12 s"
std::string seconds_text(std::uint64_t ms) {
  return ms < 10'000 ? fmt::format("{:.1f} s", static_cast<double>(ms) / 1000) : fmt::format("{} s", ms / 1000);
}

std::string short_end(const wire::ProcessState& state) {
  return state.end == EndKind::exit ? fmt::format("exit {}", state.end_code) : end_text(state);
}

std::string status_of(const wire::ProcessState& state) {
  if (state.phase == Phase::exited) {
    return state.end == EndKind::exit ? fmt::format("running (command exited {})", state.end_code)
                                      : fmt::format("running (command: {})", end_text(state));
  }
  const std::string ran = state.ran_ms ? seconds_text(static_cast<std::uint64_t>(*state.ran_ms)) : "";
  if (!state.running()) {
    return short_end(state) + (ran.empty() ? "" : " after " + ran);
  }
  const bool waits = state.waits_for_input == wire::WaitsForInput::yes && !state.paused;
  return fmt::format("{}{}, {}", state.paused ? "paused" : "running", ran.empty() ? "" : " " + ran,
                     waits ? "waits for input" : "quiet " + seconds_text(state.idle_ms));
}

}  // namespace

std::string list_line(const wire::ProcessState& state) {
  return fmt::format("{} {}: {}", process_name(state), status_of(state),
                     printable_line(state.command, k_max_command_bytes));
}

mcp::ToolResult list_processes(const ToolRequest& call) {
  const auto found = call.sandbox.processes().list(call.context.owner, k_finished_in_list, call.limit());
  if (!found) {
    return mcp::error_result(found.error());
  }
  mcp::ToolResult result;
  result.structured = {{"processes", json::array()}, {"leftOut", found->left_out}};
  std::vector<std::pair<std::string, std::string>> words;
  for (const wire::ProcessState& state : found->processes) {
    call.show(state);
    words.emplace_back(process_name(state), process_facts(state)["status"].get<std::string>());
    result.structured["processes"].push_back(process_fields(state));
    const std::string session = state.running() ? session_line(call, state, call.limit()) : "";
    result.text +=
        (result.text.empty() ? "" : "\n") + (session.empty() ? list_line(state) : process_name(state) + " " + session);
  }
  result.facts = status_facts(words);
  if (found->processes.empty()) {
    result.text = "No processes.";
  } else if (found->left_out > 0) {
    const Phase last = found->processes.back().phase;
    const bool lists_all_running = last == Phase::closed || last == Phase::lost;
    result.text += fmt::format("\n… and {} older{}", found->left_out, lists_all_running ? " finished" : "");
  }
  return result;
}

std::vector<std::string> read_process_ids(Arguments& arguments) {
  std::vector<std::string> processes = arguments.texts("processIds");
  if (const auto one = arguments.text("processId")) {
    processes.insert(processes.begin(), *one);
  }
  if (processes.size() > wire::k_max_wait_processes) {
    arguments.reject("processIds", fmt::format("must have at most {} entries", wire::k_max_wait_processes));
  }
  std::vector<std::string> distinct;
  for (std::string& process : processes) {
    if (std::find(distinct.begin(), distinct.end(), process) == distinct.end()) {
      distinct.push_back(std::move(process));
    }
  }
  return distinct;
}

}  // namespace dockbridge::tools
