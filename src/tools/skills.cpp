#include "tools/skills.hpp"

namespace dockbridge::tools {

namespace {

constexpr const char* k_long_builds = R"(# Long builds

1. Start the build with `execute_command` and `background: true`. The reply has the process id. Do not redirect the
   output to a file: it is stored with the process.
2. Wait for the end with `check_process` and `timeout: 600`. Do not poll. If the build still runs, call it again.
3. After a failure, search the stored output with `check_process` and `grep: "error|FAILED"`, or read its end with
   `tail: 50`.
4. `control_process` with `action: "terminate"` ends the build and everything it started.

A command in the foreground that takes long continues in the background. Go on with step 2.
)";

constexpr const char* k_servers = R"(# Servers

1. Start the server with `execute_command`, `background: true` and `waitFor: {"port": 8080}`. The call returns when the
   port is open, or when the server ends. Do not use `nohup`, a final `&` or an option that makes it a daemon: then its
   output and its end are lost.
2. If it needs longer, wait again with `check_process`, `waitFor: {"port": 8080}` and `timeout: 60`.
3. Send requests with `execute_command`, for example `curl -sS http://localhost:8080/`. The port is in the container.
4. Read the log with `check_process` and `tail: 50`, or search it with `grep: "ERROR"`.
5. To restart it, stop it with `control_process` and `action: "terminate"`, then begin with step 1.
)";

constexpr const char* k_debugging = R"(# Debugging

Without a terminal: `gdb -batch -ex run -ex bt --args ./program` prints a backtrace after a crash. Try this first.

With a debugger or a REPL that waits for commands:

1. Start it with `execute_command` and `tty: true`. The call returns when the program waits for input.
2. Send one command at a time with `send_input` and `input: "next"`. The reply has what the program printed.
3. If the program being debugged does not stop, interrupt it with `send_input` and `keys: ["ctrl-c"]`.
4. `check_process` shows new output or the screen, and whether the program still runs.
5. Quit with the debugger's own command, or with `control_process` and `action: "kill"`.

A process that hangs: find its pid with `ps -ef`, then run `gdb -p PID -batch -ex "thread apply all bt"`.
)";

}  // namespace

std::vector<mcp::Skill> all_skills() {
  return {{"skill://dockbridge/long-builds/SKILL.md",
           "long-builds",
           "Run builds, tests and installations that take minutes: start, wait without polling, find the errors.",
           {"execute_command", "check_process", "control_process"},
           k_long_builds},
          {"skill://dockbridge/servers/SKILL.md",
           "servers",
           "Run a server in the container: start it, wait for its port, test it, read its log, restart it.",
           {"execute_command", "check_process", "control_process"},
           k_servers},
          {"skill://dockbridge/debugging/SKILL.md",
           "debugging",
           "Debug a program with gdb, pdb or a REPL on a terminal, or get the backtrace of a crash or a hang.",
           {"execute_command", "check_process", "send_input", "control_process"},
           k_debugging}};
}

}  // namespace dockbridge::tools
