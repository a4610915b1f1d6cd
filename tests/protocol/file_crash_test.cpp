#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "support/program.hpp"
#include "support/temporary_directory.hpp"
#include "util/file.hpp"
#include "wire/frame.hpp"

// The agent's file worker is killed at each system call of a change in turn. Then another worker is started, like the
// next session would.

using namespace dockbridge;
using namespace dockbridge::test;
namespace fs = std::filesystem;

namespace {

const std::string k_old = "the old content\n" + std::string(20'000, 'o') + "\n";
const std::string k_new = "the new content\n" + std::string(9'000, 'n') + "\n";

/// A process with the role `files` of the agent, one request and the end of its stream. Killed by the destructor.
class Worker {
 public:
  Worker(const fs::path& state, const std::string& request, bool traced) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    m_socket.reset(ends[0]);
    const Fd theirs(ends[1]);
    const std::string program = (fs::path(program_path()).parent_path() / "dockbridge-agent").string();
    m_pid = ::fork();
    REQUIRE(m_pid >= 0);
    if (m_pid == 0) {
      ::dup2(theirs.get(), 0);
      ::prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN);  // as in a container
      if (traced) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      }
      ::execl(program.c_str(), "dockbridge-agent", "files", state.c_str(), nullptr);
      ::_exit(127);
    }
    REQUIRE(write_all(m_socket.get(), request));
    ::shutdown(m_socket.get(), SHUT_WR);
  }
  ~Worker() {
    if (m_pid > 0) {
      ::kill(m_pid, SIGKILL);
      ::waitpid(m_pid, nullptr, 0);
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Kills the process at its n-th entry or exit of a system call since it began to wait for a request or, with
  /// `from_start`, since it was executed. Returns false if it ended before.
  bool kill_at(int stop, bool from_start = false) {
    int status = 0;
    REQUIRE(::waitpid(m_pid, &status, 0) == m_pid);
    REQUIRE(WIFSTOPPED(status));  // the exec is complete
    ::ptrace(PTRACE_SETOPTIONS, m_pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (bool serves = from_start; stop > 0; stop -= serves ? 1 : 0) {
      REQUIRE(::ptrace(PTRACE_SYSCALL, m_pid, nullptr, nullptr) == 0);
      REQUIRE(::waitpid(m_pid, &status, 0) == m_pid);
      if (WIFEXITED(status)) {
        m_pid = -1;
        CHECK(WEXITSTATUS(status) == 0);
        return false;
      }
      serves = serves || is_reading();
    }
    ::kill(m_pid, SIGKILL);
    REQUIRE(::waitpid(m_pid, &status, 0) == m_pid);
    m_pid = -1;
    return true;
  }

  wire::Frame answer() {
    wire::FrameReader reader(wire::k_max_body_to_host);
    std::string buffer(65536, '\0');
    while (true) {
      auto frame = reader.next();
      REQUIRE(frame);
      if (*frame) {
        return std::move(**frame);
      }
      const ssize_t got = ::read(m_socket.get(), buffer.data(), buffer.size());
      REQUIRE(got > 0);
      reader.feed({buffer.data(), static_cast<std::size_t>(got)});
    }
  }
  void wait_for_end() {
    REQUIRE(::waitpid(m_pid, nullptr, 0) == m_pid);
    m_pid = -1;
  }

 private:
  [[nodiscard]] bool is_reading() const {
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, m_pid, sizeof info, &info);
    return info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_read && info.entry.args[0] == 0;
  }

  Fd m_socket;
  pid_t m_pid = -1;
};

struct World {
  TemporaryDirectory state;
  TemporaryDirectory work;

  [[nodiscard]] std::string path() const { return (work / "file").string(); }
  void put(const std::string& content) const { std::ofstream(path(), std::ios::binary) << content; }
  /// Nullopt if there is no file.
  [[nodiscard]] std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return file ? text.str() : "none";
  }
  [[nodiscard]] wire::Frame ask(json head, const std::string& body = "") const {
    Worker worker(state.path(), request(std::move(head), body), false);
    wire::Frame frame = worker.answer();
    worker.wait_for_end();
    return frame;
  }
  [[nodiscard]] std::string request(json head, const std::string& body) const {
    head.update({{"id", 1}, {"path", path()}, {"owner", "ann"}});
    return wire::encode(head, body);
  }
  [[nodiscard]] wire::Frame read() const {
    return ask(
        {{"op", "file.read"}, {"offset", 0}, {"limit", 9}, {"column", 0}, {"maxLine", 2000}, {"maxBytes", 10'000}});
  }
};

/// All names below a directory with this prefix.
int count_names(const fs::path& directory, const std::string& start) {
  return static_cast<int>(
      std::count_if(fs::directory_iterator(directory), fs::directory_iterator(),
                    [&](const auto& entry) { return entry.path().filename().string().starts_with(start); }));
}

struct Change {
  json head;
  std::string body;
  std::function<void(const World&)> prepare;
  std::set<std::string> outcomes;     ///< contents that the file may have afterwards
  bool in_place = false;              ///< the outcomes apply only after the next start
  std::vector<std::string> pieces{};  ///< staged before the change
  std::string earlier{};              ///< content that the same worker writes before the change
};

/// Kills the worker at each system call in turn, until it runs to its end. Returns the number of system call stops.
int kill_everywhere(const Change& change) {
  std::set<std::string> seen;
  int moment = 1;
  for (bool killed = true; killed; ++moment) {
    CAPTURE(moment);
    const World world;
    change.prepare(world);
    {
      std::string requests;
      if (!change.earlier.empty()) {
        requests += world.request({{"op", "file.write"}, {"text", true}}, change.earlier);
      }
      for (const std::string& piece : change.pieces) {
        requests += world.request({{"op", "file.stage"}, {"staging", "x"}, {"first", requests.empty()}}, piece);
      }
      Worker worker(world.state.path(), requests + world.request(change.head, change.body), true);
      killed = worker.kill_at(moment);
    }
    if (!change.in_place) {
      REQUIRE(change.outcomes.contains(world.content()));
    }
    (void)world.read();  // the next worker recovers first
    REQUIRE(change.outcomes.contains(world.content()));
    REQUIRE(count_names(world.work.path(), ".dockbridge-") == 0);
    REQUIRE(count_names(world.state.path(), "writing_") == 0);
    seen.insert(world.content());
  }
  CHECK(seen == change.outcomes);
  return moment;
}

}  // namespace

TEST_CASE("crash: a killed write leaves the old file or the new one") {
  const int moments = kill_everywhere({{{"op", "file.write"}, {"text", true}},
                                       k_new,
                                       [](const World& world) {
                                         world.put(k_old);
                                         (void)world.read();
                                       },
                                       {k_old, k_new}});
  CHECK(moments > 40);
}

TEST_CASE("crash: a killed second write leaves one complete content") {
  const std::string between = "the content between\n";
  kill_everywhere({{{"op", "file.write"}, {"text", true}},
                   k_new,
                   [](const World& world) {
                     world.put(k_old);
                     (void)world.read();
                   },
                   {k_old, between, k_new},
                   false,
                   {},
                   between});
}

TEST_CASE("crash: a killed edit leaves the old file or the new one") {
  const std::string edited = "the new content\n" + k_old.substr(k_old.find('\n') + 1);
  kill_everywhere({{{"op", "file.edit"}, {"edits", {{3, 3, false}}}},
                   "oldnew",
                   [](const World& world) {
                     world.put(k_old);
                     (void)world.read();
                   },
                   {k_old, edited}});
}

TEST_CASE("crash: a killed creation leaves no file or the complete one") {
  kill_everywhere({{{"op", "file.write"}, {"text", true}}, k_new, [](const World&) {}, {"none", k_new}});
}

TEST_CASE("crash: a killed write in place is recovered at the next start") {
  for (const auto& [before, after] : {std::pair(k_old, k_new), std::pair(k_new, k_old)}) {
    kill_everywhere({{{"op", "file.write"}, {"text", true}},
                     after,
                     [&before = before](const World& world) {
                       world.put(before);
                       fs::create_hard_link(world.path(), world.path() + ".other");
                       (void)world.read();
                     },
                     {before, after},
                     true});
  }
}

TEST_CASE("crash: a killed undo leaves the file before it or after it") {
  kill_everywhere({{{"op", "file.undo"}},
                   "",
                   [](const World& world) {
                     world.put(k_old);
                     (void)world.read();
                     (void)world.ask({{"op", "file.write"}, {"text", true}}, k_new);
                   },
                   {k_old, k_new}});
}

TEST_CASE("crash: a killed staged write leaves the old or new file, no pieces") {
  for (const bool in_place : {false, true}) {
    CAPTURE(in_place);
    kill_everywhere({{{"op", "file.write"}, {"text", true}, {"staging", "x"}},
                     "",
                     [&](const World& world) {
                       world.put(k_old);
                       if (in_place) {
                         fs::create_hard_link(world.path(), world.path() + ".other");
                       }
                       (void)world.read();
                     },
                     {k_old, k_new},
                     in_place,
                     {k_new.substr(0, 5000), k_new.substr(5000)}});
  }
}

namespace {

/// Three files that are edited together: two in one directory, and one with two names, which is written in place.
struct SetWorld : World {
  SetWorld() {
    fs::create_directory(work / "other");
    std::string requests;
    for (const std::string& name : names) {
      std::ofstream(work / name, std::ios::binary) << k_old;
      const json head = {{"op", "file.read"}, {"offset", 0},        {"limit", 1},     {"column", 0},
                         {"maxLine", 2000},   {"maxBytes", 10'000}, {"owner", "ann"}, {"path", (work / name).string()}};
      requests += wire::encode(head, "");
    }
    fs::create_hard_link(work / names.back(), work / "other name");
    Worker worker(state.path(), requests, false);
    worker.wait_for_end();
  }
  [[nodiscard]] std::string edit_request() const {
    json list = {{"files", json::array()}};
    std::string texts;
    for (const std::string& name : names) {
      list["files"].push_back({{"path", (work / name).string()}, {"edits", {{3, 2, false}}}});
      texts += "oldnw";
    }
    return request(
        {{"op", "file.edit_set"}, {"listBytes", list.dump().size()}, {"preview", false}, {"replacement", false}},
        list.dump() + texts);
  }
  /// "o" for a file with the old content, "n" for the new one, "?" for anything else.
  [[nodiscard]] std::string contents() const {
    const std::string edited = "the nw content\n" + k_old.substr(k_old.find('\n') + 1);
    std::string told;
    for (const std::string& name : names) {
      std::ifstream file(work / name, std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      told += text.str() == k_old ? "o" : text.str() == edited ? "n" : "?";
    }
    return told;
  }
  [[nodiscard]] bool is_tidy() const {
    return count_names(work.path(), ".dockbridge-") == 0 && count_names(work / "other", ".dockbridge-") == 0 &&
           count_names(state.path(), "writing_") == 0;
  }
  /// Recovers like the next session.
  void recover() const { (void)ask({{"op", "file.abandon"}}); }

  const std::vector<std::string> names = {"first", "other/second", "third"};
};

}  // namespace

TEST_CASE("crash: a killed set of edits changes all files or none") {
  std::set<std::string> before;  // the recovery
  std::set<std::string> after;
  int moment = 1;
  int halfway = 0;
  for (bool killed = true; killed; ++moment) {
    CAPTURE(moment);
    const SetWorld world;
    {
      Worker worker(world.state.path(), world.edit_request(), true);
      killed = worker.kill_at(moment);
    }
    before.insert(world.contents());
    halfway = halfway == 0 && world.contents() == "nno" ? moment : halfway;
    world.recover();
    after.insert(world.contents());
    REQUIRE((world.contents() == "ooo" || world.contents() == "nnn"));
    REQUIRE(world.is_tidy());
  }
  CHECK(moment > 100);
  CHECK(after == std::set<std::string>{"ooo", "nnn"});
  for (const char* mixed : {"noo", "nno", "nn?"}) {
    CHECK(before.contains(mixed));  // otherwise nothing was tested
  }
  // A recovery that is killed itself is completed by the next one.
  REQUIRE(halfway > 0);
  bool killed = true;
  for (int at = 1; killed; ++at) {
    CAPTURE(at);
    const SetWorld world;
    {
      Worker worker(world.state.path(), world.edit_request(), true);
      REQUIRE(worker.kill_at(halfway));
    }
    REQUIRE(world.contents() == "nno");
    {
      Worker worker(world.state.path(), "", true);
      killed = worker.kill_at(at, true);
    }
    world.recover();
    REQUIRE(world.contents() == "ooo");
    REQUIRE(world.is_tidy());
  }
}

TEST_CASE("file worker: the error of a malformed request names the field") {
  const World world;
  const auto error_of = [&](const json& head, const std::string& body) {
    const json error = world.ask(head, body).head.value("error", json::object());
    return error.value("code", "") + ": " + error.value("message", "");
  };
  CHECK(error_of({{"op", "file.write"}, {"text", "yes"}}, "x") == "bad_request: Malformed message: text");
  CHECK(error_of({{"op", "file.edit"}, {"edits", {{0, 1, true}, {5, 1, true}}}}, "x") ==
        "bad_request: Malformed message: edits[1][0]");
  CHECK(error_of({{"op", "file.undo"}, {"root", 1}}, "") == "bad_request: Malformed message: root");
  CHECK(error_of({{"op", "file.shred"}}, "") == "unknown_operation: Unknown operation 'file.shred'");
  CHECK(error_of({{"op", "start"}}, "") == "unknown_operation: Unknown operation 'start'");
}
