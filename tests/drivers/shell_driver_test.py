"""Tests of the driver of shells, with real processes: bash, dash and the sh of busybox."""
import os
import shutil
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_session import temporary_directory
from shell_session import ShellSession


class Shell:
    """The tests of every shell. Each has a session that has just started."""

    shell = []
    maxDiff = None

    def setUp(self):
        self.session = self.open()

    def open(self, **options):
        session = ShellSession(self.shell, **options)
        self.addCleanup(session.close)
        return session

    def run_command(self, code, **fields):
        end = self.session.run(code, **fields)
        self.assertEqual(end["status"], "ok", end)
        return end["exit"], end["stdout"], end["stderr"]

    def output(self, *codes):
        """Runs commands, all of which must succeed silently on stderr. Returns the stdout of the last one."""
        for code in codes:
            status, out, err = self.run_command(code)
            self.assertEqual((status, err), (0, ""), code)
        return out

    def assert_ends(self, code, status):
        self.session.start(code)
        self.assertIsNone(self.session.event())
        self.assertEqual(self.session.wait_for_exit(), status)

    def interrupt(self, code, wait=0.3):
        """Runs a command and interrupts it. Returns its end."""
        self.session.read_outputs()
        self.session.texts = {"stdout": b"", "stderr": b""}
        self.session.start(code)
        time.sleep(wait)
        self.session.interrupt()
        return self.session.end()

    # State

    def test_cwd_is_kept(self):
        self.assertEqual(self.output("cd /usr", "pwd"), "/usr\n")
        self.assertEqual(self.output("cd /tmp; cd - >/dev/null", "pwd; echo $OLDPWD"), "/usr\n/tmp\n")

    def test_variables_and_functions_are_kept(self):
        self.assertEqual(self.output("a=1\nexport b='2 3'", "f() {\n  echo \"$a $1\"\n}", "f x; env | grep ^b="),
                         "1 x\nb=2 3\n")

    def test_aliases_are_used_by_later_commands(self):
        self.assertEqual(self.output("alias hello='echo hi'", "hello you"), "hi you\n")

    def test_options_are_kept(self):
        self.assertEqual(self.output("set -f", "echo /*; set +f"), "/*\n")
        self.run_command("set -x")
        status, out, err = self.run_command("echo a")
        self.assertEqual((status, out), (0, "a\n"))
        self.assertRegex(err, r"\A\++ echo a\n\Z")
        self.run_command("set +x")
        self.assertEqual(self.run_command("echo b"), (0, "b\n", ""))

    def test_allexport_exports_nothing_of_the_driver(self):
        self.output("set -a; x=1")
        self.assertNotIn("__dockbridge_code", self.output("env"))
        self.assertEqual(self.output("y=2", "env | grep -c '^[xy]='"), "2\n")

    def test_status_of_the_last_command_is_seen_by_the_next(self):
        for status in (0, 1, 7, 0):
            self.assertEqual(self.run_command("(exit %d)" % status)[0], status)
            self.assertEqual(self.output("echo $?"), "%d\n" % status)

    def test_positional_parameters_and_name(self):
        self.assertEqual(self.output("echo $# $0"), "0 %s\n" % self.name)
        self.assertEqual(self.output("set -- a 'b c'", 'echo $# "$2"'), "2 b c\n")

    def test_setup_runs_before_the_command_and_persists(self):
        end = self.session.run("pwd; echo $A", setup="cd -- '/usr' && export 'A=it'\\''s'")
        self.assertEqual((end["stdout"], end["stderr"]), ("/usr\nit's\n", ""))
        self.assertEqual(self.output("pwd; env | grep ^A="), "/usr\nA=it's\n")

    def test_failed_setup_prevents_the_command(self):
        end = self.session.run("echo ran", setup="cd -- '/nowhere' && export A=1")
        self.assertEqual((end["status"], end["stdout"]), ("error", ""))
        self.assertNotEqual(end["exit"], 0)
        self.assertIn("/nowhere", end["stderr"])
        self.assertEqual(self.output("echo ok"), "ok\n")

    # Output and exit codes

    def test_streams_and_exit_code_are_exact(self):
        self.assertEqual(self.run_command("printf out; printf err >&2; (exit 9)"), (9, "out", "err"))
        self.assertEqual(self.run_command("true"), (0, "", ""))

    def test_command_not_found(self):
        status, out, err = self.run_command("nonexistent_command")
        self.assertEqual((status, out), (127, ""))
        self.assertTrue(err.startswith(self.name + ": ") and "nonexistent_command" in err and err.count("\n") == 1, err)

    def test_nothing_of_the_driver_is_open_in_commands(self):
        self.assertNotIn("socket:", self.run_command("ls -l /proc/self/fd")[1])

    def test_multiline_commands_and_heredocs(self):
        self.assertEqual(self.output("for i in 1 2; do\n  echo $i\ndone"), "1\n2\n")
        self.assertEqual(self.output("x=5\ncat <<END\n$x 'a'\n\n  \\$\nEND"), "5 'a'\n\n  $\n")
        self.assertEqual(self.output("cat <<'END'\n  $x \\\nEND"), "  $x \\\n")

    def test_large_command(self):
        line = "#" + "x" * 98 + "\n"
        self.assertEqual(self.output(line * 10000 + "echo done"), "done\n")
        self.assertEqual(self.output("x='" + "y" * 1000000 + "'\necho ${#x}"), "1000000\n")

    def test_bytes_that_are_not_utf8(self):
        every = bytes(range(1, 256)).replace(b"'", b"")
        end = self.session.run(b"printf '%s' '" + every + b"'")
        self.assertEqual(end["stdout"].encode("utf-8", "surrogateescape"), every)

    def test_leading_blanks_and_backslashes_are_kept(self):
        self.assertEqual(self.output("printf '%s' '  a\\\n  \\b  '"), "  a\\\n  \\b  ")

    def test_large_output(self):
        self.assertEqual(len(self.output("head -c 60000 /dev/zero | tr '\\0' x")), 60000)

    # Errors

    def test_syntax_errors_keep_the_shell(self):
        self.output("kept=1")
        for code in ("echo 'unclosed", 'echo "', "echo $(", "if true", "done", "echo )", "a() {", "<<"):
            status, out, err = self.run_command(code)
            self.assertNotEqual(status, 0, code)
            self.assertEqual(out, "", code)
            self.assertNotEqual(err, "", code)
        self.assertEqual(self.output("echo $kept"), "1\n")

    def test_exit_ends_the_shell(self):
        self.assert_ends("exit 3", 3)

    def test_exec_replaces_the_shell(self):
        self.assert_ends("exec sh -c 'exit 5'", 5)

    def test_errexit_ends_the_shell(self):
        self.assertEqual(self.output("set -e; false || true", "if false; then :; fi"), "")
        self.assert_ends("echo a; false; echo b", 1)
        self.assertEqual(self.session.texts["stdout"], b"a\n")

    def test_errexit_does_not_see_the_last_status(self):
        self.assertEqual(self.run_command("set -e; ! true")[0], 1)
        self.assertEqual(self.run_command("test -f /nowhere && echo there")[0], 1)
        self.assertEqual(self.output("echo ok"), "ok\n")

    def test_driver_works_with_nounset(self):
        self.assertEqual(self.output("set -u", "echo ok"), "ok\n")

    def test_break_continue_and_return_keep_the_shell(self):
        for code in ("break", "break 5", "continue", "while :; do break 9; done"):
            self.session.run(code)
            self.assertEqual(self.output("echo ok"), "ok\n", code)
        self.assertEqual(self.session.run("return 4; echo no")["stdout"], "")
        self.assertEqual(self.output("echo ok"), "ok\n")

    def test_many_breaks(self):
        for _ in range(300):
            self.session.run("break")
        self.assertEqual(self.output("echo ok"), "ok\n")

    def test_redefined_builtins(self):
        self.output("printf() { :; }; read() { :; }; test() { :; }; cd() { echo mine; }; kill() { :; }")
        self.assertEqual(self.output("cd /; echo ok"), "mine\nok\n")

    def test_changed_variables(self):
        self.assertEqual(self.output("IFS=0123; PATH=; HOME=; unset PWD OLDPWD", "echo ok"), "ok\n")

    # Descriptors

    def test_closed_and_redirected_descriptors(self):
        self.output("exec 3>&- 4>&- 5>&-")
        with temporary_directory() as directory:
            path = directory + "/file"
            self.output("exec 3>%s" % path, "echo kept >&3", "exec 3>&-")
            self.output("exec >%s.out" % path, "echo to file")
            self.assertEqual(open(path).read(), "kept\n")
            self.assertEqual(open(path + ".out").read(), "to file\n")

    def test_closed_standard_streams(self):
        self.session.run("exec <&- >&- 2>&-")
        self.assertEqual(self.session.run("true")["exit"], 0)

    def test_read_reads_the_stdin_of_the_process(self):
        self.session.start("read x; echo \"<$x>\"")
        self.session.process.stdin.write(b"line\nrest\n")
        self.assertEqual(self.session.end()["exit"], 0)
        self.assertEqual(self.session.texts["stdout"], b"<line>\n")
        self.assertEqual(self.output("read y; echo $x $y"), "line rest\n")

    # Jobs, signals and traps

    def test_background_jobs(self):
        began = time.monotonic()
        self.output("sleep 100 & job=$!")
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("sleep 100", self.run_command("jobs")[1] if self.name == "bash" else "sleep 100")
        self.run_command("kill $job")
        self.assertEqual(self.run_command("wait $job")[0], 143)
        self.assertEqual(self.output("echo a & wait $!"), "a\n")

    def assert_interrupted(self, code, wait=0.3):
        end = self.interrupt(code, wait)
        self.assertEqual((end["status"], end["exit"], end["kept"]), ("interrupted", 130, True), (code, end))
        self.assertEqual(end["stdout"], "", code)
        self.assertEqual(self.output("echo $?"), "130\n")
        return end

    def test_interrupt_keeps_the_shell(self):
        self.output("kept=1")
        for code in ("sleep 50; echo no", "while :; do sleep 1; done; echo no", "while :; do :; done; echo no",
                     "sleep 50\necho no", "x=$(sleep 50); echo no", "sleep 50 | cat; echo no", "cat; echo no",
                     "read x; echo no", "sleep 50 & wait; echo no", "(sleep 50; echo no); echo no",
                     "if sleep 50; then echo no; else echo no; fi; echo no", "sleep 50 || echo no; echo no"):
            with self.subTest(code):
                self.assert_interrupted(code)
        self.assertEqual(self.output("echo $kept"), "1\n")

    def test_interrupt_of_functions(self):
        self.output("busy() { while :; do :; done; echo no; }", "waits() { sleep 50; echo no; }",
                    "reads() { read x; echo no; }",
                    "outer() { $1; echo no; }", "outermost() { for i in 1 2; do outer $1; done; echo no; }")
        for inner in ("busy", "waits", "reads"):
            for code in (inner + "; echo no", "outer %s; echo no" % inner, "while :; do outermost %s; done" % inner):
                with self.subTest(code):
                    self.assert_interrupted(code)
        self.assertEqual(self.output("f() { echo works; }; f"), "works\n")

    def test_interrupt_between_commands_is_ignored(self):
        for _ in range(20):
            self.session.interrupt()
            self.assertEqual(self.output("echo ok"), "ok\n")

    def test_a_part_of_a_request_does_not_run(self):
        request = self.session.request("echo one\necho two", 1, "%032x" % 1)
        self.session.channel.sendall(request[:-3])
        self.session.channel.shutdown(socket.SHUT_WR)
        self.assertEqual(self.session.wait_for_exit(), 0)
        self.assertEqual(self.session.texts["stdout"], b"")

    def test_many_interrupts(self):
        for _ in range(20):
            self.assert_interrupted("while :; do :; done", wait=0.02)

    def test_trap_of_interrupt(self):
        end = self.interrupt("trap 'echo caught' INT; i=0; while [ $i -lt 10 ]; do sleep 0.1; i=$((i+1)); done; echo done")
        self.assertEqual((end["status"], end["exit"], end["stdout"]), ("ok", 0, "caught\ndone\n"))
        self.assert_interrupted("sleep 50")

    def test_trap_of_exit(self):
        self.output("trap 'echo bye' EXIT")
        self.assert_ends("exit 2", 2)
        self.assertEqual(self.session.texts["stdout"], b"bye\n")

    def test_signals_of_commands(self):
        self.assertEqual(self.run_command("sh -c 'kill -9 $$'")[0], 137)
        self.assert_ends("kill -9 $$", -signal.SIGKILL)

    # Protocol

    def test_stale_cell_is_not_run(self):
        self.output("x=1")
        for cell in (1, 3, 0):
            self.session.channel.sendall(self.session.request("x=2", cell, "ab"))
            self.assertEqual(self.session.event(), {"event": "stale", "cell": cell, "key": "ab"})
        self.assertEqual(self.output("echo $x"), "1\n")

    def test_bad_requests(self):
        for line in (b"nonsense", b"run x ab 0 1", b"run 1 ab 0", b"run 1 $(id) 0 1", b"run 1 ab 0 1x"):
            self.session.send_line(line)
            self.assertEqual(self.session.event()["event"], "bad_request", line)
        self.session.send_line(b"ping")
        self.assertEqual(self.session.event(), {"event": "pong"})
        self.assertEqual(self.output("echo ok"), "ok\n")

    def test_end_of_the_channel_ends_the_shell(self):
        self.session.channel.shutdown(1)
        self.assertEqual(self.session.wait_for_exit(), 0)

    def test_idle_limit(self):
        session = self.open(idle_limit=0.3)
        self.assertEqual(session.run("sleep 0.5; echo a")["stdout"], "a\n")
        self.assertEqual(session.event(), {"event": "idle"})
        self.assertEqual(session.wait_for_exit(), 0)
        self.assertEqual(session.texts["stderr"], b"")

    def test_driver_does_not_fork(self):
        last = [int(self.output("sh -c 'echo $$'")) for _ in range(2)]
        self.assertLess(last[1] - last[0], 50)


class Bash(Shell, unittest.TestCase):
    shell = ["bash"]
    name = "bash"

    def test_messages_are_those_of_bash(self):
        self.assertEqual(self.run_command("foo")[2], "bash: line 1: foo: command not found\n")
        self.assertEqual(self.run_command("true\nfoo")[2], "bash: line 2: foo: command not found\n")
        self.session.run("return")
        self.assert_interrupted("sleep 50")
        self.assertEqual(self.run_command("foo")[2], "bash: line 1: foo: command not found\n")

    def test_special_variables(self):
        self.assertEqual(self.output("echo $LINENO $0 ${#FUNCNAME[@]} $BASH_SUBSHELL $-"), "1 bash 0 0 hBc\n")

    def test_declarations_are_global(self):
        self.assertEqual(self.output("declare -A m=([a]=1); declare -i n=2+3", "echo ${m[a]} $n"), "1 5\n")

    def test_shopt_is_kept(self):
        self.assertEqual(self.output("shopt -s nullglob", "echo /nowhere*"), "\n")

    def test_trap_of_debug(self):
        self.output("trap 'count=$((count+1))' DEBUG")
        self.assertEqual(self.output("echo a"), "a\n")
        self.assertEqual(self.output("trap - DEBUG; echo b"), "b\n")

    def test_trap_of_error(self):
        self.output("trap 'echo failed' ERR")
        self.assertEqual(self.run_command("false"), (1, "failed\n", ""))
        self.assertEqual(self.run_command("echo $?"), (0, "1\n", ""))

    def test_nounset_ends_the_shell(self):
        self.session.start("set -u; echo $nowhere; echo no")
        self.assertIsNone(self.session.event())
        self.assertNotEqual(self.session.wait_for_exit(), 0)
        self.assertEqual(self.session.texts["stdout"], b"")

    def test_interrupt_in_a_sourced_file(self):
        with temporary_directory() as directory:
            with open(directory + "/file", "w") as file:
                file.write("while :; do sleep 1; done\necho no\n")
            self.assert_interrupted(". %s/file; echo no" % directory)

    def test_deleted_cwd(self):
        with temporary_directory() as directory:
            self.output("cd " + directory)
        self.assert_interrupted("sleep 50")
        self.assertEqual(self.output("echo $PWD"), directory + "\n")


class Dash(Shell, unittest.TestCase):
    shell = ["dash"]
    name = "sh"

    def test_nounset_keeps_the_shell(self):
        status, out, err = self.run_command("set -u; echo $nowhere; echo no")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("parameter not set", err)
        self.assertEqual(self.output("echo ok"), "ok\n")


class Busybox(Dash):
    shell = ["busybox", "sh"]


if __name__ == "__main__":
    for program in ("bash", "dash", "busybox"):
        assert shutil.which(program), program + " is missing"
    unittest.main()
