#include "agent/keeper/command_end.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

#include "support/temporary_directory.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using agent::CommandEnd;
using wire::Phase;

namespace {

const std::string k_process = "proc_1_a";
const Clock::time_point k_end_time{};

/// Forks a child that waits to be killed.
pid_t start_sleeper() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  return pid;
}

/// Kills a child and waits until it can be reaped.
void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
}

}  // namespace

TEST_CASE("command end: a command whose child runs on is exited, then closed") {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "journal";
  const Fd journal(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  CommandEnd command(journal, k_process);
  const pid_t pid = start_sleeper();
  const pid_t child = start_sleeper();
  command.begin(pid);
  CHECK_FALSE(command.reap());
  end(pid);
  CHECK(command.reap() == Phase::exited);
  command.enter(Phase::exited, {});
  command.record(k_end_time);
  CHECK_FALSE(command.reap());
  end(child);
  CHECK(command.reap() == Phase::closed);
  command.enter(Phase::closed, {});
  command.record(k_end_time);
  CHECK_FALSE(command.is_unrecorded());
  agent::StatePacket state;
  command.describe(state);
  CHECK(state.pid == pid);
  CHECK(state.end == static_cast<std::uint8_t>(wire::EndKind::signal));
  CHECK(state.end_code == SIGKILL);
  const std::string lines = read_file_at(AT_FDCWD, path, 10'000).value();
  CHECK(lines.find("\"closed\":false") < lines.find("\"closed\":true"));
}

TEST_CASE("command end: the first cause counts, and none after the end") {
  const Fd journal(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const auto cause_of = [](const CommandEnd& command) {
    agent::StatePacket state;
    command.describe(state);
    return static_cast<wire::Cause>(state.cause);
  };
  CommandEnd first(journal, k_process);
  first.set_cause(wire::Cause::timeout);
  first.set_cause(wire::Cause::cancelled);
  CHECK(cause_of(first) == wire::Cause::timeout);
  CommandEnd late(journal, k_process);
  late.enter(Phase::exited, {});
  late.set_cause(wire::Cause::cancelled);
  CHECK(cause_of(late) == wire::Cause::none);
}

TEST_CASE("command end: a record that a full disk refuses is tried again later") {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CommandEnd command(full, k_process);
  command.enter(Phase::closed, {});
  command.record(k_end_time);
  CHECK(command.is_unrecorded());
  CHECK(command.next_record() == k_end_time + milliseconds(1000));
}
