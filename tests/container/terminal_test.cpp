#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A user at the terminal of one process, who types and reads the screen.
class Person {
 public:
  Person(Server& server, const std::string& command, json tty = {{"cols", 80}, {"rows", 24}})
      : m_server(server), m_id(start_in_background(server, command, {{"tty", std::move(tty)}})) {}

  [[nodiscard]] std::string screen() const {
    return field(fields_of(check(m_server, m_id, {{"screen", true}})), "screen", "text");
  }
  void sees(const std::string& text) const {
    CAPTURE(text);
    eventually("to see " + text, [&] { return screen().find(text) != std::string::npos; });
  }
  void does_not_see(const std::string& text) const {
    eventually("not to see " + text, [&] { return screen().find(text) == std::string::npos; });
  }
  void types(const std::string& text) const {
    m_server.call("send_input", {{"processId", m_id}, {"input", text}, {"autoNewline", false}});
  }
  void presses(const std::vector<std::string>& keys) const { press(m_server, m_id, keys); }
  [[nodiscard]] json ends() const { return fields_of(check(m_server, m_id, {{"timeout", 20}})); }
  [[nodiscard]] const std::string& id() const { return m_id; }

 private:
  Server& m_server;
  std::string m_id;
};

}  // namespace

TEST_CASE("vim: open, write, save, leave") {
  Connected c;
  const Person person(c.server, "vim -u NONE /app/letter.txt");
  person.sees("letter.txt");
  CHECK(field(fields_of(check(c.server, person.id())), "screen", "fullScreen") == true);
  person.presses({"i"});
  person.types("Dear dockbridge,");
  person.presses({"enter"});
  person.types("hello wörld");
  person.sees("hello wörld");
  person.presses({"escape", "up", "home", "x"});
  person.sees("ear dockbridge,");
  person.types(":wq");
  person.presses({"enter"});
  CHECK(field(person.ends(), "exitCode") == 0);
  CHECK(field(fields_of(c.server.execute("cat /app/letter.txt")), "stdout") == "ear dockbridge,\nhello wörld\n");
}

TEST_CASE("less: scroll, search, quit") {
  Connected c;
  const Person person(c.server, "seq 1 500 | less", {{"cols", 40}, {"rows", 10}});
  person.sees("1\n2\n3\n");
  person.presses({"page-down"});
  person.sees("10\n11\n");
  person.types("/^300$");
  person.presses({"enter"});
  person.sees("300\n301\n");
  CHECK(field(fields_of(check(c.server, person.id())), "waitsForInput") == "yes");
  person.presses({"q"});
  CHECK(field(person.ends(), "exitCode") == 0);
}

TEST_CASE("top: shows processes, and quits on q") {
  Connected c;
  const Person person(c.server, "top");
  person.sees("load average");
  person.sees("COMMAND");
  person.presses({"q"});
  CHECK(field(person.ends(), "exitCode") == 0);
}

TEST_CASE("git add -p: choose hunks") {
  Connected c;
  c.server.execute(
      "cd /app && git init -q . && git config user.email a@b && git config user.name a && seq 1 40 > f && git add f && "
      "git commit -qm one && sed -i '2s/.*/two/;38s/.*/thirty-eight/' f");
  const Person person(c.server, "git add -p");
  person.sees("Stage this hunk");
  person.types("y\r");
  person.sees("thirty-eight");
  person.types("n\r");
  CHECK(field(person.ends(), "exitCode") == 0);
  CHECK(field(fields_of(c.server.execute("git diff --cached | grep -c '^+two'; git diff | grep -c '^+thirty'")),
              "stdout") == "1\n1\n");
}

TEST_CASE("python3: a session with line editing and history, ended by ctrl-d") {
  Connected c;
  const Person person(c.server, "python3 -q");
  person.sees(">>>");
  person.types("print(6 * 7)");
  person.presses({"left", "backspace", "9", "enter"});
  person.sees("54");
  person.presses({"up", "enter"});
  eventually("it twice",
             [&] { return person.screen().find("54", person.screen().find("54\n") + 3) != std::string::npos; });
  person.presses({"ctrl-d"});
  CHECK(field(person.ends(), "exitCode") == 0);
}

TEST_CASE("terminal: a password prompt waits for input and does not show it") {
  Connected c;
  const json asked = c.server.execute("read -s -p 'Password: ' p; echo; echo \"${#p} characters\"", {{"tty", true}});
  CHECK(field(fields_of(asked), "returned") == "waits_for_input");
  CHECK(field(fields_of(asked), "stdout") == "Password: ");
  const std::string id = field(fields_of(asked), "processId");
  const json answered = c.server.call("send_input", {{"processId", id}, {"input", "secret"}, {"screen", false}});
  CAPTURE(answered.dump());
  CHECK(fields_of(answered).value("waitsForInput", "") != "yes");  // it has received its input, or has ended
  CHECK(answered.dump().find("secret") == std::string::npos);
  const json ended = check(c.server, id, {{"timeout", 30}, {"screen", false}});
  CHECK(ended.dump().find("secret") == std::string::npos);
  CHECK(field(fields_of(ended), "exitCode") == 0);
  CHECK(field(fields_of(ended), "stdout") == "Password: \n6 characters\n");
}

TEST_CASE("terminal: a shell has prompt, ctrl-c, foreground job and eof") {
  Connected c;
  const Person person(c.server, "PS1='$ ' bash --norc");
  person.sees("$");
  person.types("sleep 600\r");
  eventually("sleep runs", [&] { return field(fields_of(check(c.server, person.id())), "waitsForInput") == "no"; });
  person.presses({"ctrl-c"});
  person.sees("^C");
  person.types("echo status $?\r");
  person.sees("status 130");
  c.server.call("send_input", {{"processId", person.id()}, {"eof", true}});
  CHECK(field(person.ends(), "status") == "completed");
}

TEST_CASE("terminal: has the requested size, and a new one after a resize") {
  Connected c;
  const Person person(c.server, "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done",
                      {{"cols", 100}, {"rows", 30}});
  person.sees("30 100");
  control(c.server, person.id(), "resize", {{"cols", 60}, {"rows", 20}});
  person.sees("20 60");
  CHECK(field(fields_of(check(c.server, person.id(), {{"screen", true}})), "screen", "columns") == 60);
}

TEST_CASE("terminal: output is readable as a stream, and the last screen is kept") {
  Connected c;
  const json result = c.server.execute(
      "tput setaf 1; echo red; tput sgr0; test -t 0 && test -t 1 && test -t 2 && echo tty", {{"tty", true}});
  CHECK(field(fields_of(result), "stdout") == "red\ntty\n");
  CHECK(field(fields_of(result), "tty") == true);
  const json screen = check(c.server, field(fields_of(result), "processId"), {{"screen", true}});
  CHECK(field(fields_of(screen), "screen", "text") == "red\ntty\n");
  const std::string piped = field(fields_of(c.server.execute("true")), "processId");
  CHECK(field(error_of(check(c.server, piped, {{"screen", true}})), "code") == "no_screen");
}

TEST_CASE("terminal: output that crashes the emulator loses only the screen") {
  Connected c;
  const std::string id = start_in_background(
      c.server,
      "head -c 3000000 /dev/urandom; for i in $(seq 200); do printf '\\033[%d@\\033[%dL\\033[%dX' $RANDOM $RANDOM "
      "$RANDOM; done; reset; clear; echo still here; read x; exit 9",
      {{"tty", true}});
  const json alive =
      check(c.server, id, {{"waitFor", {{"input", true}}}, {"timeout", 30}, {"screen", false}, {"tail", 1}});
  CHECK(field(fields_of(alive), "happened") == "input");
  const json ended = c.server.call("send_input", {{"processId", id}, {"input", "x"}, {"screen", false}});
  CHECK(field(fields_of(check(c.server, id, {{"timeout", 20}, {"tail", 1}})), "exitCode") == 9);
}

TEST_CASE("terminal: text sent after keys arrives after them") {
  Connected c;
  const Person person(c.server, "read a; read b; echo \"got $a and $b\"; read c");
  person.types("first");
  person.sees("first");
  const auto to_screens = [&](int signal) {
    for (const int pid : c.container.pids_of(k_screen)) {
      ::kill(pid, signal);
    }
  };
  const auto send = [&](json what) {
    what["processId"] = person.id();
    what["screen"] = false;
    what["autoNewline"] = false;
    const auto began = Clock::now();
    CHECK(field(c.server.call("send_input", what), "isError") == false);
    CHECK(Clock::now() - began < std::chrono::seconds{10});
  };
  to_screens(SIGSTOP);
  send({{"keys", {"1", "enter"}}});
  send({{"input", "second"}});
  send({{"keys", {"2"}}});
  send({{"input", "\r"}});
  to_screens(SIGCONT);
  person.sees("got first1 and second2");
  // It is not lost either if the process never reads it.
  to_screens(SIGSTOP);
  send({{"keys", {"3"}}});
  send({{"input", "third\r"}});
  to_screens(SIGKILL);
  CHECK(field(person.ends(), "exitCode") == 0);
}

TEST_CASE("terminal: a killed screen process is replaced without effect") {
  Connected c;
  const Person person(c.server, "PS1='$ ' bash --norc");
  person.sees("$");
  for (const int pid : c.container.pids_of(k_screen)) {
    ::kill(pid, SIGKILL);
  }
  person.presses({"ctrl-l"});
  person.types("echo again\r");
  person.sees("again");
  person.types("exit 4\r");
  CHECK(field(person.ends(), "exitCode") == 4);
  eventually("no screen process left", [&] { return c.container.pids_of(k_screen).empty(); });
}

TEST_CASE("terminal: arguments that do not fit a terminal are rejected") {
  Connected c;
  CHECK(field(error_of(c.server.execute("true", {{"tty", {{"cols", 0}, {"rows", 5}}}})), "code") == "bad_arguments");
  CHECK(field(error_of(c.server.execute("true", {{"tty", {{"cols", 80}, {"rows", 100000}}}})), "code") ==
        "bad_arguments");
  CHECK(field(error_of(c.server.execute("true", {{"tty", "yes"}})), "code") == "bad_arguments");
  CHECK(field(fields_of(c.server.execute("stty size", {{"tty", json::object()}})), "stdout") == "40 120\n");
}

TEST_CASE("terminal: concurrent reads of one screen are all answered") {
  Connected c;
  const Person person(c.server, "PS1='$ ' bash --norc");
  person.sees("$");
  std::vector<int> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(c.server.start_call("check_process", {{"processId", person.id()}, {"screen", true}}));
  }
  for (const int call : calls) {
    CHECK(field(fields_of(field(c.server.receive_answer(call), "result")), "screen", "text") == "$\n");
  }
}

TEST_CASE("terminal: a command with stdin from a file still has the terminal") {
  Connected c;
  const json result = c.server.execute("cat; echo done > /dev/tty", {{"tty", true}, {"stdin", "from a file\n"}});
  CHECK(field(fields_of(result), "stdout") == "from a file\ndone\n");
}

TEST_CASE("terminal: eof ends the input, also within a line") {
  Connected c;
  const Person person(c.server, "cat > /app/typed; echo over");
  c.server.call("send_input", {{"processId", person.id()}, {"input", "no end"}, {"autoNewline", false}, {"eof", true}});
  CHECK(field(person.ends(), "exitCode") == 0);
  CHECK(field(fields_of(c.server.execute("cat /app/typed")), "stdout") == "no end");
}

TEST_CASE("terminal: scrolled-off output is readable from the cursor") {
  Connected c;
  const Person person(c.server, "seq 1 500; read x");
  person.sees("500");
  const json shown = fields_of(check(c.server, person.id(), {{"screen", true}}));
  CHECK(field(shown, "screen", "text").get<std::string>().find("\n2\n") == std::string::npos);
  const json stream = fields_of(check(c.server, person.id(), {{"since", field(shown, "cursor")}}));
  CHECK(field(stream, "stdout").get<std::string>().starts_with("1\n2\n3\n"));
}

TEST_CASE("terminal: long output is cut between lines, and stdoutGaps has the range") {
  Connected c;
  const json result = c.server.execute("seq 1 100000", {{"tty", true}, {"maxOutput", 2000}});
  CHECK(text_of(result).find(" bytes of stdout left out]") != std::string::npos);
  const json& fields = fields_of(result);
  const std::string out = field(fields, "stdout");
  CAPTURE(out);
  REQUIRE(field(fields, "stdoutGaps").size() == 1);
  const json& gap = field(fields, "stdoutGaps", 0);
  CHECK(out.find_first_not_of("0123456789\n") == std::string::npos);
  const std::string before = out.substr(0, field(gap, "at"));
  CHECK(before.starts_with("1\n2\n3\n"));
  // On a terminal a line ends with two characters.
  const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  CHECK(before.size() + lines == field(gap, "from"));
  CHECK(out.ends_with("\n99999\n100000\n"));
}

TEST_CASE("terminal: a large screen is shortened to the lines around the cursor") {
  Connected c;
  const std::string id = start_in_background(
      c.server, "printf '\\033[?1049h\\033[H'; seq -s ' ' 100000 | head -c 99000; printf '\\033[199;1HHERE'; read x",
      {{"tty", {{"cols", 500}, {"rows", 200}}}});
  eventually("the screen is drawn", [&] {
    return text_of(check(c.server, id, {{"screen", true}})).find("HERE") != std::string::npos;
  });
  const std::string usual = text_of(check(c.server, id));
  CAPTURE(usual);
  CHECK(usual.size() <= 10'000);
  CHECK(usual.find("HERE") != std::string::npos);
  const std::size_t remark = usual.find("[lines 1-");
  REQUIRE(remark != std::string::npos);
  const std::size_t wanted = usual.find("maxOutput: ", remark);
  REQUIRE(wanted != std::string::npos);
  const int bytes = std::stoi(usual.substr(wanted + std::string("maxOutput: ").size()));
  const std::string whole = text_of(check(c.server, id, {{"maxOutput", bytes}}));
  CHECK(whole.find("left out") == std::string::npos);
  CHECK(whole.find("1 2 3 4 5 ") != std::string::npos);
  (void)control(c.server, id, "kill");
}

TEST_CASE("terminal: lines filled by moving the cursor do not exceed the limits") {
  Connected c;
  const json result =
      c.server.execute("for i in $(seq 900); do printf '\\033[110Cx%d\\r\\n' $i; done", {{"tty", true}});
  CHECK(text_of(result).size() <= 10'000);
  CHECK(text_of(result).find("x900") != std::string::npos);
}
