#include "tools/wait_report.hpp"

#include <fmt/format.h>

#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using sandbox::Snapshot;
using wire::Happened;

constexpr std::size_t k_max_line = 300;
constexpr std::size_t k_max_command = 80;

/// Whether the port of a wait is open, and for whom. Empty if nothing listens on it.
std::string port_text(const Snapshot& snapshot, std::uint16_t port) {
  const auto& listener = snapshot.listener;
  if (!listener || listener->is_own) {
    return snapshot.happened == Happened::port ? fmt::format("\nPort {} is open.", port) : "";
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

/// What did not happen within the time of a wait.
std::string missed_text(const Snapshot& snapshot, const sandbox::Until& until, milliseconds timeout) {
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

std::string happened_word(Happened happened) {
  switch (happened) {
    case Happened::ended:
      return "exit";
    case Happened::nothing:
      return "timeout";
    case Happened::grew:
    case Happened::pattern:
    case Happened::port:
    case Happened::idle:
    case Happened::input:
      break;
  }
  return std::string(name_of(happened));
}

std::string happened_text(const Snapshot& snapshot, const sandbox::Until& until, milliseconds timeout) {
  std::string text;
  if (snapshot.happened == Happened::pattern) {
    text = "\nMatched line: " + printable_line(snapshot.line, k_max_line);
  } else if (snapshot.happened == Happened::nothing) {
    text = missed_text(snapshot, until, timeout);
  }
  return until.port ? text + port_text(snapshot, *until.port) : text;
}

}  // namespace dockbridge::tools
