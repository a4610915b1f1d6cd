#include "tools/wait_report.hpp"

#include <fmt/format.h>

#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using sandbox::Snapshot;
using wire::WaitOutcome;

constexpr std::size_t k_max_line = 300;
constexpr std::size_t k_max_command = 80;

/// States whether the port of a wait is open, and which process listens on it. Empty if none does.
std::string port_text(const Snapshot& snapshot, std::uint16_t port) {
  const auto& listener = snapshot.listener;
  if (!listener || listener->is_own) {
    return snapshot.happened == WaitOutcome::port ? fmt::format("\nPort {} is open.", port) : "";
  }
  if (listener->pid == 0) {
    return fmt::format("\nPort {} is open, but its listener cannot be determined (no permission).", port);
  }
  const std::string program = fmt::format("`{}`", printable_line(listener->command, k_max_command));
  const std::string name = listener->number > 0 ? fmt::format("p{}", listener->number) : listener->process;
  const std::string holder = name.empty() ? fmt::format("pid {} ({})", listener->pid, program)
                                          : fmt::format("{} (pid {}, {})", name, listener->pid, program);
  return fmt::format("\nPort {} is held by {}, not by {}.", port, holder, process_name(snapshot.state));
}

/// States which events did not happen within the time of a wait.
std::string missed_text(const Snapshot& snapshot, const wire::WaitCondition& until, milliseconds timeout) {
  const double waited = static_cast<double>(timeout.count()) / 1000;
  std::string text;
  if (until.pattern) {
    text += fmt::format("\nNo line matched after {:g} s.", waited);
  }
  if (until.port && !snapshot.listener) {
    text += fmt::format("\nPort {} is not open after {:g} s.", *until.port, waited);
  }
  if (until.idle) {
    text += fmt::format("\nNo pause of {:g} s in the output after {:g} s.",
                        static_cast<double>(until.idle->count()) / 1000, waited);
  }
  return text.empty() && !until.port ? fmt::format("\nNot ended after {:g} s.", waited) : text;
}

}  // namespace

std::string happened_word(WaitOutcome happened) {
  switch (happened) {
    case WaitOutcome::ended:
    case WaitOutcome::side:  // the running cell of a session has ended
      return "exit";
    case WaitOutcome::nothing:
      return "timeout";
    case WaitOutcome::grew:
    case WaitOutcome::pattern:
    case WaitOutcome::port:
    case WaitOutcome::idle:
    case WaitOutcome::input:
      break;
  }
  return std::string(name_of(happened));
}

std::string happened_text(const Snapshot& snapshot, const wire::WaitCondition& until, milliseconds timeout) {
  std::string text;
  if (snapshot.happened == WaitOutcome::pattern) {
    text = "\nMatched line: " + printable_line(snapshot.line, k_max_line);
  } else if (snapshot.happened == WaitOutcome::nothing) {
    text = missed_text(snapshot, until, timeout);
  } else if (snapshot.happened == WaitOutcome::input && (until.pattern || until.port)) {
    text = "\nwaitFor with input: false waits on.";
  }
  return until.port ? text + port_text(snapshot, *until.port) : text;
}

}  // namespace dockbridge::tools
