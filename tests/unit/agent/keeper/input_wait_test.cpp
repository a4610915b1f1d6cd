#include "agent/keeper/input_wait.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/process_tree.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"
#include "util/fd.hpp"

using namespace dockbridge;
using agent::waits_for_input;
using wire::WaitsForInput;

namespace {

/// A command with a pipe or a terminal as its input, killed at the end.
class Command {
 public:
  explicit Command(const std::string& script, bool on_terminal = false) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    m_read_end.reset(ends[0]);
    m_write_end.reset(ends[1]);
    if (on_terminal) {
      m_write_end.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
      const int unlocked = 0;
      REQUIRE(::ioctl(m_write_end.get(), TIOCSPTLCK, &unlocked) == 0);
      m_read_end.reset(::ioctl(m_write_end.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
      REQUIRE(m_read_end);
    }
    const int input = m_read_end.get();
    const Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const int output = on_terminal ? input : nothing.get();
    m_pid = ::fork();
    if (m_pid == 0) {
      ::setsid();
      ::dup2(input, 0);
      ::dup2(output, 1);
      ::dup2(output, 2);
      ::ioctl(0, TIOCSCTTY, 0);
      ::execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Command() {
    ::kill(-m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  [[nodiscard]] agent::InputWait look() const {
    return waits_for_input(agent::descendants(), agent::input_source(m_read_end.get()));
  }
  [[nodiscard]] WaitsForInput waits() const { return look().waits; }
  void comes_to(WaitsForInput expected) const {
    test::eventually("the verdict", [&] { return waits() == expected; });
  }
  /// Waits until it is `unknown` because of a timer.
  void comes_to_timer() const {
    test::eventually("a timer", [&] { return look().has_timer && waits() == WaitsForInput::unknown; });
  }
  [[nodiscard]] pid_t pid() const { return m_pid; }
  void write(const std::string& text) const {
    REQUIRE(::write(m_write_end.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  /// Waits until the script has reached its `sleep`.
  void sleeps() const {
    test::eventually("a sleeping child", [&] {
      for (const auto& entry : agent::descendants()) {
        if (entry.parent == m_pid && entry.state == 'S') {
          return true;
        }
      }
      return false;
    });
  }

 private:
  Fd m_read_end;
  Fd m_write_end;
  pid_t m_pid = -1;
};

#ifdef __x86_64__
/// A program for a 32-bit machine that makes one system call with the arguments 0, a buffer, 1, and ends.
std::string program_of_32_bits(char system_call) {
  std::string program =
      // The header, then one segment: the whole file at 0x08048000, with the entry point 0x08048054.
      std::string(
          "\x7f"
          "ELF\1\1\1\0\0\0\0\0\0\0\0\0"
          "\2\0\3\0\1\0\0\0"
          "\x54\x80\4\x08"
          "\x34\0\0\0",
          32) +
      std::string(
          "\0\0\0\0\0\0\0\0"
          "\x34\0\x20\0\1\0\0\0\0\0\0\0",
          20) +
      std::string("\1\0\0\0\0\0\0\0\0\x80\4\x08\0\x80\4\x08\0\1\0\0\0\1\0\0\5\0\0\0\0\x10\0\0", 32);
  program += std::string("\xb8", 1) + system_call + std::string("\0\0\0", 3);  // mov eax, system_call
  program += std::string("\x31\xdb\x89\xe1\xba\1\0\0\0\xcd\x80", 11);          // ebx, ecx, edx; int 0x80
  program += std::string("\xb8\1\0\0\0\x31\xdb\xcd\x80", 9);                   // exit(0)
  program.resize(256);
  return program;
}
#endif

}  // namespace

#ifdef __x86_64__
TEST_CASE("input wait: unknown for a 32-bit program, whose system calls differ") {
  constexpr char k_read = 3;
  constexpr char k_pause = 29;
  const test::TemporaryDirectory directory;
  for (const char call : {k_read, k_pause}) {
    CAPTURE(static_cast<int>(call));
    const std::string path = directory / std::to_string(call);
    std::ofstream(path) << program_of_32_bits(call);
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    const Command command("exec " + path);
    test::eventually("the program runs", [&] {
      const auto tree = agent::descendants();
      return tree.size() == 1 && std::filesystem::read_symlink(fmt::format("/proc/{}/exe", command.pid())) == path &&
             tree.front().state == 'S';
    });
    CHECK(command.waits() == WaitsForInput::unknown);
  }
}
#endif

TEST_CASE("input wait: every way to read the input is detected") {
  for (const std::string script :
       {"cat", "read x", "cat | cat", "exec cat", "(cat)", "exec 5<&0; cat <&5", "head -c 1 | wc",
        "python3 -c 'input()'", "python3 -c 'import select; select.select([0],[],[])'",
        "python3 -c 'import select; select.select([0],[],[],60)'",
        "python3 -c 'import select; p=select.poll(); p.register(0,1); p.poll()'",
        "python3 -c 'import select; p=select.epoll(); p.register(0,1); p.poll()'",
        "python3 -c 'import threading; threading.Thread(target=input).start()'",
        // Pipes and socket pairs with which a program wakes itself up.
        "python3 -c 'import os,select; r,w=os.pipe(); select.select([0,r],[],[])'",
        "python3 -c 'import socket,select; a,b=socket.socketpair(); select.select([0,a],[],[])'"}) {
    CAPTURE(script);
    Command(script).comes_to(WaitsForInput::yes);
  }
}

TEST_CASE("input wait: a wait for something else is not a wait for input") {
  for (const std::string script :
       {"sleep 60; true", "sleep 60 | sort", "sleep 60 < /dev/null; true", "cat < <(sleep 60; true)"}) {
    CAPTURE(script);
    const Command command(script);
    command.sleeps();
    CHECK(command.waits() == WaitsForInput::no);
  }
}

TEST_CASE("input wait: the terminal is recognized, also as /dev/tty") {
  for (const std::string script :
       {"cat", "read -s x", "cat < /dev/tty", "python3 -c 'import getpass; getpass.getpass()'"}) {
    CAPTURE(script);
    Command(script, true).comes_to(WaitsForInput::yes);
  }
}

TEST_CASE("input wait: unknown for a server that also reads its input") {
  Command("python3 -c 'import select,socket; s=socket.socket(); s.listen(); select.select([0,s],[],[])'")
      .comes_to(WaitsForInput::unknown);
}

TEST_CASE("input wait: unknown for a terminal relay, or a reader beside other work") {
  Command("script -qc 'sleep 60' /dev/null").comes_to(WaitsForInput::unknown);
  Command(
      "python3 -c 'import threading,socket; threading.Thread(target=input).start(); s=socket.socket(); s.listen(); "
      "s.accept()'")
      .comes_to(WaitsForInput::unknown);
  Command("while :; do :; done & cat").comes_to(WaitsForInput::unknown);
}

TEST_CASE("input wait: a reader continues after input and waits again") {
  const Command command("while read x; do sleep 0.2; done");
  command.comes_to(WaitsForInput::yes);
  command.write("line\n");
  command.comes_to(WaitsForInput::no);
  command.comes_to(WaitsForInput::yes);
}

TEST_CASE("input wait: a stopped process does not wait") {
  const Command command("cat; true");
  command.comes_to(WaitsForInput::yes);
  ::kill(-command.pid(), SIGSTOP);
  command.comes_to(WaitsForInput::no);
  ::kill(-command.pid(), SIGCONT);
  command.comes_to(WaitsForInput::yes);
}

TEST_CASE("input wait: a reader that also awaits a child, a timer or a clock is unknown") {
  Command(
      "python3 -c 'import os,select; r,w=os.pipe(); os.set_inheritable(w, True); os.fork() or os.execvp(\"sleep\", "
      "[\"sleep\",\"60\"]); "
      "os.close(w); "
      "select.select([0,r],[],[])'")
      .comes_to(WaitsForInput::unknown);
  Command("python3 -c 'import threading,time; threading.Thread(target=input).start(); time.sleep(60)'")
      .comes_to(WaitsForInput::unknown);
}

TEST_CASE("input wait: the timer of an event loop is distinguished from other work") {
  Command("python3 -c 'import select; p=select.epoll(); p.register(0,1); p.poll(60)'").comes_to_timer();
  const Command both(
      "python3 -c 'import select,socket; s=socket.socket(); s.listen(); p=select.epoll(); p.register(0,1); "
      "p.register(s,1); p.poll(60)'");
  both.comes_to(WaitsForInput::unknown);
  CHECK_FALSE(both.look().has_timer);
}

TEST_CASE("input wait: reports the timeout of the reader") {
  const Command polls("python3 -c 'import select; select.select([0],[],[],60)'");
  polls.comes_to(WaitsForInput::yes);
  CHECK(polls.look().timeout > seconds(50));
  CHECK(polls.look().timeout <= seconds(60));
  const Command reads("cat");
  reads.comes_to(WaitsForInput::yes);
  CHECK(reads.look().timeout == milliseconds(0));
  const Command raw("stty -icanon min 0 time 50; cat", true);
  test::eventually("a read with a timeout", [&] { return raw.look().timeout == seconds(5); });
}

TEST_CASE("input wait: a reader is alone only if all others are its ancestors") {
  const Command chain("(cat); true");
  chain.comes_to(WaitsForInput::yes);
  CHECK(chain.look().is_alone);
  const Command pipeline("cat | (read x; true)");
  pipeline.comes_to(WaitsForInput::yes);
  CHECK_FALSE(pipeline.look().is_alone);
}

TEST_CASE("input wait: root can examine another user's process") {
  if (::geteuid() != 0) {
    return;  // only root can start one
  }
  Command("exec setpriv --reuid=65534 --regid=65534 --clear-groups cat").comes_to(WaitsForInput::yes);
  CHECK(::geteuid() == 0);
}
