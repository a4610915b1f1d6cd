#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/full.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A program on a terminal, observed only through the replies to the input that is sent to it.
class Terminal {
 public:
  Terminal(Server& server, const std::string& command, json more = json::object()) : m_server(server) {
    more["tty"] = true;
    m_started = server.execute(command, more);
    CAPTURE(m_started.dump());
    REQUIRE(field(m_started, "isError") == false);
    m_id = field(fields_of(m_started), "processId");
  }

  [[nodiscard]] const json& started() const { return m_started; }
  [[nodiscard]] const std::string& id() const { return m_id; }
  json send(const std::string& input, json more = json::object()) const {
    more["processId"] = m_id;
    more["input"] = input;
    return m_server.call("send_input", more);
  }
  [[nodiscard]] json type(const std::string& input, const std::vector<std::string>& keys = {}) const {
    return send(input, {{"autoNewline", false}, {"keys", keys}});
  }

 private:
  Server& m_server;
  json m_started;
  std::string m_id;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* k_repository =
    "git init -q /app/r && cd /app/r && git config user.email a@b && git config user.name a && git commit -q "
    "--allow-empty -m first";

}  // namespace

TEST_CASE("send_input: vim's screen after escape is never stale") {
  Connected c;
  const Terminal vim(c.server, "vim /app/lines.txt");
  REQUIRE(field(fields_of(vim.started()), "returned") == "waits_for_input");
  const int rounds = full_run() ? 200 : 40;
  int stale = 0;
  for (int i = 0; i < rounds; ++i) {
    const json reply = vim.type(fmt::format("ggOline {}", i), {"escape"});
    const std::string text = text_of(reply);
    const bool is_stale = !has(text, fmt::format("line {}\n", i)) || has(text, "-- INSERT --");
    stale += is_stale ? 1 : 0;
    if (is_stale) {
      MESSAGE(text);
    }
  }
  MESSAGE(stale, " of ", rounds, " screens were stale");
  CHECK(stale == 0);
}

TEST_CASE("send_input: the reply to :wq is sent after git has committed") {
  Connected c;
  c.server.execute(k_repository);
  const Terminal shell(c.server, "cd /app/r && PS1='$ ' EDITOR=vim bash --norc");
  const int rounds = full_run() ? 200 : 40;
  int stale = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string opened = text_of(shell.send("git commit --allow-empty"));
    const json typed = shell.type(fmt::format("imessage {}", i), {"escape"});
    const json closed = shell.send(":wq");
    const std::string log = field(fields_of(c.server.execute("git -C /app/r log -1 --format=%s")), "stdout");
    const bool is_stale = log != fmt::format("message {}\n", i);
    stale += is_stale ? 1 : 0;
    if (is_stale) {
      MESSAGE(opened, "\n--- typed\n", text_of(typed), "\n--- closed\n", text_of(closed), "\n--- log\n", log);
    }
    // Nothing of the editor is left.
    const std::string lines = fields_of(closed).value("stdout", "a screen");
    CAPTURE(closed.dump());
    CHECK(lines.find('\x1b') == std::string::npos);
    CHECK_FALSE(has(lines, "~\n"));
    CHECK_FALSE(has(lines, "# Please enter"));
    CHECK(has(lines, fmt::format("message {}\n", i)));
    CHECK(lines.ends_with("$ "));
  }
  MESSAGE(stale, " of ", rounds, " commits came after the reply");
  CHECK(stale == 0);
}

TEST_CASE("send_input: a rebase is finished when its editor's reply arrives") {
  Connected c;
  c.server.execute(std::string(k_repository) +
                   " && for i in 1 2 3; do echo $i > f$i; git add f$i; git commit -qm old$i; done");
  const Terminal rebase(c.server, "cd /app/r && GIT_EDITOR=vim git rebase -i HEAD~2");
  REQUIRE(field(fields_of(rebase.started()), "returned") == "waits_for_input");
  CHECK(has(text_of(rebase.type(":2s/pick/reword/\r")), "reword"));
  CHECK(has(text_of(rebase.send(":wq")), "old3"));  // the editor for the message
  CHECK(has(text_of(rebase.type("ccnew3", {"escape"})), "new3"));
  const json ended = rebase.send(":wq");
  CHECK(field(fields_of(ended), "exitCode") == 0);
  CHECK(has(text_of(ended), "Successfully rebased"));
  CHECK(field(fields_of(c.server.execute("git -C /app/r log -2 --format=%s")), "stdout") == "new3\nold2\n");
}

TEST_CASE("send_input: a REPL's reply is its new lines, without the echo") {
  Connected c;
  const Terminal python(c.server, "python3 -q");
  CHECK(field(fields_of(python.started()), "stdout") == ">>> ");
  CHECK(field(fields_of(python.send("6 * 7")), "stdout") == "42\n>>> ");
  CHECK(field(fields_of(python.send("x = 1")), "stdout") == ">>> ");
  CHECK(text_of(python.send("6 * 9")).starts_with("54\n>>> \n"));
  // Neither editing a line nor a line wider than the terminal leaves anything behind.
  CHECK(field(fields_of(python.type("print('abx", {"backspace", "c", "'", ")", "enter"})), "stdout") ==
        ">>> print('abc')\nabc\n>>> ");
  const std::string longer(150, 'y');
  CHECK(field(fields_of(python.send("len('" + longer + "')")), "stdout") == "150\n>>> ");
  CHECK(field(fields_of(python.send("print('" + longer + "')")), "stdout") == longer + "\n>>> ");
  const Terminal shell(c.server, "PS1='$ ' bash --norc");
  CHECK(field(fields_of(shell.send("for i in 1 2 3; do printf \"$i0%%\\r\"; done; echo done")), "stdout") ==
        "done\n$ ");
}

TEST_CASE("send_input: a slow answer is waited for up to two seconds") {
  Connected c;
  const Terminal shell(c.server, "PS1='$ ' bash --norc");
  CHECK(field(fields_of(shell.send("sleep 1; echo late")), "stdout") == "late\n$ ");
  const auto began = Clock::now();
  const json early = shell.send("echo now; sleep 30");
  CHECK(Clock::now() - began >= milliseconds(1900));
  CHECK(Clock::now() - began < seconds(10));
  CHECK(field(fields_of(early), "stdout") == "now\n");
  CHECK(field(fields_of(early), "waitsForInput") == "no");
}

TEST_CASE("send_input: shows what was printed since the last reply, once") {
  Connected c;
  const Terminal shell(c.server, "PS1='$ ' bash --norc");
  const json early = shell.send("sleep 3; echo BREAKPOINT HIT");
  CHECK(text_of(early).find("check_process with timeout waits for the answer.") != std::string::npos);
  c.server.call("check_process", {{"processId", shell.id()}, {"waitFor", {{"pattern", "^BREAKPOINT"}}}, {"tail", 1}});
  const json after = shell.send("echo next");
  CAPTURE(after.dump());
  CHECK(has(text_of(after), "BREAKPOINT HIT\n"));
  CHECK(has(text_of(after), "\nnext\n"));
  const json rest = c.server.call("check_process", {{"processId", shell.id()}});
  CHECK_FALSE(has(text_of(rest), "BREAKPOINT HIT"));
}

TEST_CASE("send_input: an echo is no answer of a program that cannot be inspected") {
  Connected c;
  const Terminal nested(c.server, "script -qc \"PS1='$ ' bash --norc\" /dev/null", {{"maxWaitTime", 1}});
  const json late = nested.send("sleep 1; echo late");
  CAPTURE(late.dump());
  CHECK(field(fields_of(late), "stdout") == "late\n$ ");
  const Terminal su(c.server, "exec setpriv --reuid=65534 --regid=65534 --clear-groups su");
  REQUIRE(field(fields_of(su.started()), "returned") == "waits_for_input");
  const json failed = su.send("wrong", {{"timeout", 20}});
  CAPTURE(failed.dump());
  CHECK(has(text_of(failed), "Authentication failure"));
  CHECK(field(fields_of(failed), "status") == "completed");
}

TEST_CASE("send_input: unread input does not delay ctrl-c") {
  Connected c;
  const Terminal sleeping(c.server, "sleep 600", {{"maxWaitTime", 1}});
  CHECK(field(fields_of(sleeping.send(std::string(5000, 'x') + "\n" + std::string(5000, 'y'), {{"timeout", 0}})),
              "accepted") == 10'002);
  const json ended = sleeping.type("", {"ctrl-c"});
  CAPTURE(ended.dump());
  CHECK(field(fields_of(ended), "status") == "completed");
}

TEST_CASE("send_input: an edited line is shown") {
  Connected c;
  const Terminal shell(c.server, "PS1='$ ' bash --norc");
  CHECK(field(fields_of(shell.type("abc def")), "stdout") == "$ abc def");
  CHECK(field(fields_of(shell.type("", {"ctrl-w"})), "stdout") == "$ abc ");
  CHECK(text_of(shell.type("", {"right"})).starts_with("(no new output)\n"));
}

TEST_CASE("send_input: waitFor and timeout replace the wait for the answer") {
  Connected c;
  const std::string id =
      start_in_background(c.server, "while read x; do echo \"got $x\"; (sleep 0.5; echo \"did $x\") & done; exit 3");
  const auto send = [&](json more) {
    more["processId"] = id;
    more["input"] = "it";
    return c.server.call("send_input", more);
  };
  CHECK(field(fields_of(send({{"waitFor", {{"pattern", "did it"}}}})), "stdout") == "got it\ndid it\n");
  const json missed = send({{"waitFor", {{"pattern", "never"}}}, {"timeout", 0.2}});
  CHECK(has(text_of(missed), "No line matched after 0.2 s."));
  const json ended = send({{"waitFor", {{"exit", true}}}, {"eof", true}});
  CHECK(field(fields_of(ended), "exitCode") == 3);
}

TEST_CASE("screen: programs that address it are shown as a screen, others as lines") {
  Connected c;
  const auto shown = [&](const std::string& command) {
    const Terminal terminal(c.server, command);
    const bool is_screen = fields_of(terminal.started()).contains("screen");
    CHECK(has(text_of(terminal.started()), "SCREEN (120x40") == is_screen);
    control(c.server, terminal.id(), "kill");
    return is_screen ? "screen" : "lines";
  };
  CHECK(shown("top -d 30") == "screen");
  CHECK(shown("vim -u NONE") == "screen");
  CHECK(shown("less /etc/passwd") == "screen");
  CHECK(shown("clear; read -p 'menu> ' x") == "screen");
  CHECK(shown("python3 -c 'import curses; curses.wrapper(lambda s: s.getch())'") == "screen");
  CHECK(shown("python3 -q") == "lines");
  CHECK(shown("PS1='\\[\\e[1;32m\\]$\\[\\e[m\\] ' bash --norc") == "lines");
  CHECK(shown("printf '10%%\\r50%%\\r\\033[K100%%\\n'; read x") == "lines");
  CHECK(shown("printf 'a: 1\\nb: 1\\n\\033[2Aa: 2\\nb: 2\\n'; read x") == "lines");
}

TEST_CASE("screen: a menu that redraws earlier lines is shown as a screen") {
  Connected c;
  const Terminal menu(c.server,
                      "printf '> one\\n  two\\n'; read -n 1 x; printf '\\r\\033[2A  one\\n> two\\n'; read -n 1 x");
  CHECK(field(fields_of(menu.started()), "stdout") == "> one\n  two\n");
  const json moved = menu.type("j");
  CAPTURE(moved.dump());
  CHECK(has(field(fields_of(moved), "screen", "text"), "  one\n> two\n"));
}

TEST_CASE("screen: the reply after a full-screen program contains none of it") {
  Connected c;
  const Terminal shell(c.server, "PS1='$ ' bash --norc");
  for (const std::string program : {"less /etc/passwd", "vim -u NONE /etc/passwd", "top -d 30"}) {
    CAPTURE(program);
    CHECK(fields_of(shell.send(program)).contains("screen"));
    const json left = program.starts_with("vim") ? shell.send(":q!") : shell.type("q");
    CAPTURE(left.dump());
    CHECK(fields_of(left).value("stdout", "a screen").ends_with("$ "));
    CHECK(fields_of(left).value("stdout", "a screen").size() < 5);
    CHECK(field(fields_of(shell.send("echo back")), "stdout") == "back\n$ ");
  }
  const Terminal top(c.server, "top -d 30");
  const json ended = top.type("q");
  CHECK(field(fields_of(ended), "exitCode") == 0);
  CHECK_FALSE(has(text_of(ended), "load average"));
  CHECK(text_of(ended).find('\x1b') == std::string::npos);
}

TEST_CASE("send_input: uses bracketed paste if the program enabled it") {
  Connected c;
  const std::string reader = "stty raw -echo; head -c 18 | od -c -A n; stty sane";
  const Terminal marked(c.server, "printf '\\033[?2004h'; " + reader);
  const json pasted = marked.send("one\ntwo", {{"paste", true}, {"autoNewline", false}, {"timeout", 10}});
  CAPTURE(pasted.dump());
  CHECK(has(text_of(pasted), "033   [   2   0   0   ~   o   n   e  \\r   t   w   o 033   [   2\n   0   1"));
  const Terminal plain(c.server, "stty raw -echo; head -c 8 | od -c -A n; stty sane");
  const json typed = plain.send("one\ntwo", {{"paste", true}});
  CHECK(has(text_of(typed), "o   n   e  \\r   t   w   o  \\r"));
  // A shell inserts pasted lines and runs nothing until enter is pressed.
  const Terminal shell(c.server, "PS1='$ ' bash --norc");
  CHECK(has(text_of(shell.send("echo a\necho b", {{"paste", true}, {"autoNewline", false}})), "echo b"));
  CHECK(has(text_of(shell.type("", {"enter"})), "a\nb\n$"));
}
