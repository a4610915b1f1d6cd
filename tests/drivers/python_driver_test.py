"""Tests of the driver of Python sessions, with real processes. The standard library of Python is enough.

DOCKBRIDGE_TEST_PYTHON selects the interpreter that runs the driver.
"""
import ast
import json
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_session import Session, install, k_interpreter, k_sources, k_start, temporary_directory

k_png = "bytes.fromhex('89504e470d0a1a0a0000000d494844520000000300000002') + b'rest'"


class DriverTest(unittest.TestCase):
    """Gives each test a session that has just started."""

    maxDiff = None

    def setUp(self):
        self.session = self.open()

    def open(self, **options):
        session = Session(**options)
        self.addCleanup(session.close)
        return session

    def value(self, *codes):
        """Runs cells, all of which must succeed. Returns the value of the last one."""
        for code in codes:
            value = self.session.value(code)
        return value


class Values(DriverTest):
    def test_value_of_the_last_expression(self):
        self.assertEqual(self.value("x = 20\nx + 1"), "21")

    def test_none_has_no_value(self):
        self.assertNotIn("value", self.session.run("None"))

    def test_statement_has_no_value(self):
        self.assertNotIn("value", self.session.run("x = 1"))

    def test_empty_cell_has_no_value(self):
        self.assertEqual(self.session.run("\n# nothing\n")["status"], "ok")

    def test_semicolon_suppresses_the_value(self):
        for code in ("1;", "1 ; # note", "(1\n);", "1;\n\n# end", "'a;b';"):
            self.assertNotIn("value", self.session.run(code), code)

    def test_semicolon_in_string_or_comment_suppresses_nothing(self):
        self.assertEqual(self.value("'a;'"), "'a;'")
        self.assertEqual(self.value("5 # a;"), "5")
        self.assertEqual(self.value("'é' + ('b'  # ;\n)"), "'éb'")

    def test_earlier_values_have_names(self):
        self.assertEqual(self.value("1", "2", "3", "(_, __, ___)"), "(3, 2, 1)")

    def test_long_text_is_cut_and_counted(self):
        end = self.session.run("'a' * 200000")
        self.assertEqual(len(end["value"]["text/plain"]), 100000)
        self.assertEqual(end["cut"], {"text/plain": 200002})

    def test_failing_repr_fails_the_cell(self):
        error = self.session.error("class A:\n    def __repr__(self):\n        raise KeyError('k')\nA()")
        self.assertEqual(error["name"], "KeyError")
        self.assertIn("raise KeyError('k')", error["traceback"])

    def test_html_is_in_the_bundle(self):
        end = self.session.run("class A:\n    def _repr_html_(self): return '<b>x</b>'\n"
                               "    def __repr__(self): return 'plain'\nA()")
        self.assertEqual(end["value"], {"text/html": "<b>x</b>", "text/plain": "plain"})

    def test_mimebundle_takes_precedence(self):
        end = self.session.run("class A:\n    def _repr_html_(self): return 'old'\n"
                               "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
                               "        return {'text/html': 'new', 'text/plain': 'p'}, {'text/html': {'k': 1}}\nA()")
        self.assertEqual(end["value"], {"text/html": "new", "text/plain": "p"})
        self.assertEqual(end["metadata"], {"text/html": {"k": 1}})

    def test_failing_repr_html_is_reported_and_the_cell_succeeds(self):
        end = self.session.run("class A:\n    def _repr_html_(self): raise OSError('no html')\n"
                               "    def __repr__(self): return 'plain'\nA()")
        self.assertEqual((end["status"], end["value"]), ("ok", {"text/plain": "plain"}))
        self.assertIn("no html", end["stderr"])

    def test_ipython_display_replaces_the_value(self):
        end = self.session.run("class A:\n    def _ipython_display_(self): display('me')\nA()")
        self.assertNotIn("value", end)
        self.assertEqual(end["displays"][0]["data"], {"text/plain": "'me'"})

    def test_json_representation_is_text(self):
        end = self.session.run("class A:\n    def _repr_json_(self): return {'a': [1]}\nA()")
        self.assertEqual(json.loads(end["value"]["application/json"]), {"a": [1]})

    def test_mock_has_only_a_repr(self):
        end = self.session.run("from unittest.mock import MagicMock\nMagicMock()")
        self.assertEqual(list(end["value"]), ["text/plain"])

    def test_lone_surrogates_do_not_reach_the_channel(self):
        end = self.session.run("class A:\n    def __repr__(self): return 'a\\udc80'\nA()")
        self.assertEqual(end["value"]["text/plain"], "a\\udc80")


class Displays(DriverTest):
    def test_display_is_a_builtin_and_keeps_order(self):
        end = self.session.run("display(1, 'b')\ndisplay(3)")
        self.assertEqual([event["data"]["text/plain"] for event in end["displays"]], ["1", "'b'", "3"])

    def test_display_comes_after_earlier_output(self):
        self.session.start("print('before', end='')\ndisplay(1)\ninput()")
        self.session.event("display")
        self.session.read_outputs()
        self.assertEqual(self.session.texts["stdout"], b"before")

    def test_raw_bundle(self):
        end = self.session.run("display({'text/markdown': '# a'}, raw=True, metadata={'a': 1})")
        self.assertEqual(end["displays"][0]["data"], {"text/markdown": "# a"})
        self.assertEqual(end["displays"][0]["metadata"], {"a": 1})

    def png(self, code="display(P())", **fields):
        self.session.run("class P:\n    def _repr_png_(self): return %s\n    def __repr__(self): return 'P'" % k_png)
        return self.session.run(code, **fields)

    def test_png_goes_to_a_file_of_the_given_directory(self):
        with temporary_directory() as directory:
            open(directory + "/plot-1.png", "w").close()
            figures = {"directory": directory, "prefix": "plot"}
            end = self.png("display(P())\nP()", figures=figures)
            image = end["displays"][0]["data"]["image/png"]
            self.assertEqual(image, {"path": directory + "/plot-2.png", "bytes": 28, "width": 3, "height": 2})
            self.assertEqual(end["value"]["image/png"]["path"], directory + "/plot-3.png")
            with open(image["path"], "rb") as file:
                self.assertEqual(file.read(), eval(k_png))

    def test_png_goes_to_tmp_if_the_directory_cannot_be_written(self):
        end = self.png(figures={"directory": "/proc/none", "prefix": "driver-test-%d" % os.getpid()})
        path = end["displays"][0]["data"]["image/png"]["path"]
        self.assertEqual(path, "/tmp/driver-test-%d-1.png" % os.getpid())
        os.unlink(path)

    def test_event_states_why_a_file_cannot_be_written(self):
        self.session.run("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))")
        prefix = "driver-test-full-%d" % os.getpid()
        image = self.png(figures={"directory": "/tmp", "prefix": prefix})["displays"][0]["data"]["image/png"]
        self.assertEqual(image["error"], "Cannot write png to /tmp: File too large")
        self.assertNotIn("path", image)
        self.assertEqual([name for name in os.listdir("/tmp") if name.startswith(prefix)], [])

    def test_base64_image_of_a_bundle_goes_to_a_file(self):
        with temporary_directory() as directory:
            end = self.session.run("display({'image/jpeg': '/9j/'}, raw=True)",
                                   figures={"directory": directory, "prefix": "p"})
            self.assertEqual(end["displays"][0]["data"]["image/jpeg"],
                             {"path": directory + "/p-1.jpg", "bytes": 3})

    def test_long_html_goes_to_a_file(self):
        with temporary_directory() as directory:
            end = self.session.run("display({'text/html': 'h' * 100001}, raw=True)",
                                   figures={"directory": directory, "prefix": "p"})
            self.assertEqual(end["displays"][0]["data"]["text/html"],
                             {"path": directory + "/p-1.html", "bytes": 100001})


class Errors(DriverTest):
    def test_traceback_has_source_and_no_driver_frames(self):
        self.session.run("def f(x):\n    return 1 / x")
        error = self.session.error("f(0)")
        self.assertEqual((error["name"], error["value"]), ("ZeroDivisionError", "division by zero"))
        lines = [line for line in error["traceback"].splitlines() if not set(line) <= set(" ^~")]
        self.assertEqual(lines, ["Traceback (most recent call last):", '  File "<cell 2>", line 1, in <module>',
                                 "    f(0)", '  File "<cell 1>", line 2, in f', "    return 1 / x",
                                 "ZeroDivisionError: division by zero"])

    def test_state_before_the_error_is_kept(self):
        self.session.error("x = 5\nraise ValueError")
        self.assertEqual(self.value("x"), "5")

    def test_syntax_error_has_a_caret(self):
        error = self.session.error("x = 1\ny = = 2")
        lines = error["traceback"].splitlines()
        self.assertEqual(lines[:3], ['  File "<cell 1>", line 2', "    y = = 2", "        ^"])
        self.assertEqual(error["name"], "SyntaxError")

    def test_cause_and_context(self):
        text = self.session.error("try: 1 / 0\nexcept Exception as e: raise KeyError('a') from e")["traceback"]
        self.assertIn("The above exception was the direct cause of the following exception:", text)
        text = self.session.error("try:\n    1 / 0\nexcept Exception:\n    raise KeyError('a')")["traceback"]
        self.assertIn("During handling of the above exception, another exception occurred:", text)
        self.assertNotIn("dockbridge", text)

    def test_exception_group(self):
        if self.session.ready["version"] < "3.11" or self.session.ready["version"].startswith(("3.8", "3.9")):
            return
        text = self.session.error("raise ExceptionGroup('g', [ValueError(1), KeyError(2)])")["traceback"]
        self.assertIn("  | ExceptionGroup: g (2 sub-exceptions)", text)
        self.assertIn("KeyError: 2", text)

    def test_note_is_in_the_traceback(self):
        if self.session.ready["version"].startswith(("3.8", "3.9", "3.10")):
            return
        self.assertIn("\nhint\n", self.session.error("e = ValueError(1)\ne.add_note('hint')\nraise e")["traceback"])

    def test_recursion_error_is_folded(self):
        text = self.session.error("def f():\n    f()\nf()")["traceback"]
        self.assertIn("more times]", text)
        self.assertIn("RecursionError: maximum recursion depth exceeded", text)
        self.assertLess(len(text), 2000)

    def test_error_whose_str_fails(self):
        error = self.session.error("class E(Exception):\n    def __str__(self): raise ValueError\nraise E")
        self.assertEqual((error["name"], error["value"]), ("E", "<exception str() failed>"))

    def test_long_error_is_cut_and_counted(self):
        error = self.session.error("raise ValueError('a' * 150000)")
        self.assertEqual(len(error["value"]), 100000)
        self.assertEqual(len(error["traceback"]), 100000)
        self.assertEqual(error["cut"]["value"], 150000)

    def test_getsource_of_an_earlier_function(self):
        self.assertEqual(self.value("def f():\n    return 7", "import inspect\ninspect.getsource(f)"),
                         repr("def f():\n    return 7\n"))

    def test_traceback_printed_by_user_code_has_source(self):
        end = self.session.run("import traceback\ntry:\n    1 / 0\nexcept Exception:\n    traceback.print_exc()")
        self.assertIn("    1 / 0", end["stderr"])

    def test_damaged_standard_library_leaves_the_name_of_the_error(self):
        error = self.session.error("import sys, traceback\nsys.modules['traceback'] = None\nraise KeyError(1)")
        self.assertEqual(error, {"name": "KeyError", "value": "", "traceback": "KeyError\n"})

    def test_sys_exit_is_an_error_that_keeps_the_session(self):
        error = self.session.error("x = 4\nimport sys\nsys.exit(3)")
        self.assertEqual((error["name"], error["value"], error["code"]), ("SystemExit", "3", 3))
        self.assertEqual(self.value("x"), "4")

    def test_exit_keeps_stdin_open(self):
        self.assertEqual(self.session.error("exit()")["code"], 0)
        self.assertEqual(self.value("import sys\nsys.stdin.closed"), "False")

    def test_cell_reports_a_missing_directory(self):
        error = self.session.error("x = 1", cwd="/nonexistent")
        self.assertEqual(error["name"], "FileNotFoundError")

    def test_future_annotations_last(self):
        self.assertEqual(self.value("from __future__ import annotations", "def f(a: Unknown): pass\nf.__annotations__"),
                         "{'a': 'Unknown'}")


class Main(DriverTest):
    def test_name_is_main(self):
        self.assertEqual(self.value("found = None\nif __name__ == '__main__':\n    found = 1\nfound"), "1")

    def test_namespace_is_empty_at_start(self):
        self.assertEqual(self.value("[n for n in dir() if not n.startswith('__')]"), "[]")

    def test_modules_are_searched_in_the_working_directory_only(self):
        self.assertEqual(self.value("import sys\nsys.path[0], any('dockbridge' in p for p in sys.path)"),
                         "('', False)")

    def test_pickle_of_own_class(self):
        self.assertEqual(self.value("import pickle\nclass A: pass", "type(pickle.loads(pickle.dumps(A()))) is A"),
                         "True")

    def test_dataclass(self):
        self.assertEqual(self.value("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(3)"),
                         "P(x=3)")

    def test_multiprocessing_with_fork(self):
        self.assertEqual(self.value("import multiprocessing as m\ndef f(x): return x * 2",
                                    "with m.get_context('fork').Pool(2) as p: r = p.map(f, [1, 2])\nr"), "[2, 4]")

    def test_multiprocessing_with_spawn(self):
        self.assertEqual(self.value("import math, multiprocessing as m\n"
                                    "with m.get_context('spawn').Pool(1) as p: r = p.map(math.sqrt, [4])\nr"), "[2.0]")

    def test_cwd_and_env_of_a_request(self):
        end = self.session.run("import os\nos.getcwd(), os.environ['A']", cwd="/usr", env={"A": "b"})
        self.assertEqual(end["value"]["text/plain"], "('/usr', 'b')")

    def test_variables_of_the_driver_are_not_in_the_environment(self):
        session = self.open(environment={"DOCKBRIDGE_PYTHON_IPYTHON": "never"})
        self.assertEqual(session.value("import os\n[n for n in os.environ if n.startswith('DOCKBRIDGE_PY')]"), "[]")


class Asyncio(DriverTest):
    def test_top_level_await(self):
        self.assertEqual(self.value("import asyncio\nx = await asyncio.sleep(0, 5)\nx"), "5")

    def test_async_for_and_async_with(self):
        self.assertEqual(self.value("class C:\n    async def __aenter__(self): return 1\n"
                                    "    async def __aexit__(self, *a): pass\nasync def g():\n    yield 2",
                                    "r = []\nasync with C() as c:\n    r.append(c)\nasync for i in g():\n"
                                    "    r.append(i)\nr"), "[1, 2]")

    def test_error_in_await_has_no_foreign_frames(self):
        text = self.session.error("async def f():\n    raise KeyError(1)\nawait f()")["traceback"]
        self.assertEqual(text.count("  File "), 2)
        self.assertIn('File "<cell 1>", line 2, in f', text)

    def test_background_task_runs_between_cells(self):
        self.session.run("import asyncio\nasync def f():\n    await asyncio.sleep(0.05)\n    print('ran')\n"
                         "async def start(): return asyncio.ensure_future(f())\nt = await start()")
        self.session.wait_for_text("stdout", "ran")
        self.assertEqual(self.value("t.done()"), "True")

    def test_exception_of_a_background_task_is_printed(self):
        self.session.run("import asyncio\nasync def f(): raise KeyError('lost')\n"
                         "async def start(): return asyncio.ensure_future(f())\nt = await start()")
        self.session.wait_for_text("stderr", "KeyError: 'lost'")
        self.assertIn(b"Exception in a background task:", self.session.texts["stderr"])

    def test_retrieved_exception_of_a_task_is_not_printed(self):
        end = self.session.run("import asyncio\nasync def f(): raise KeyError('seen')\n"
                               "r = await asyncio.gather(f(), return_exceptions=True)\nawait asyncio.sleep(0.2)\nr")
        self.assertEqual((end["value"]["text/plain"], end["stderr"]), ("[KeyError('seen')]", ""))

    def test_asyncio_run_works_in_a_plain_cell(self):
        self.assertEqual(self.value("import asyncio\nawait asyncio.sleep(0)",
                                    "async def f(): return 6\nasyncio.run(f())"), "6")
        self.assertEqual(self.value("await asyncio.sleep(0, 7)"), "7")

    def test_request_arrives_while_a_task_is_busy(self):
        self.session.run("import asyncio\nn = 0\nasync def f():\n    global n\n    while True:\n        n += 1\n"
                         "        await asyncio.sleep(0)\nasync def start(): return asyncio.ensure_future(f())\n"
                         "t = await start()")
        self.assertEqual(self.session.ask(op="ping")["event"], "pong")
        self.assertEqual(self.value("n > 0 and not t.done()"), "True")

    def test_interrupt_of_an_await_keeps_background_tasks(self):
        self.session.run("import asyncio\nn = 0\nasync def f():\n    global n\n    while True:\n        n += 1\n"
                         "        await asyncio.sleep(0.001)\nasync def start(): return asyncio.ensure_future(f())\n"
                         "t = await start()")
        self.session.start("await asyncio.sleep(100)")
        self.session.interrupt()
        end = self.session.end()
        self.assertEqual((end["status"], end["error"]["name"]), ("interrupted", "KeyboardInterrupt"))
        self.assertEqual(self.value("t.done()"), "False")
        self.assertEqual(self.value("m = n\nawait asyncio.sleep(0.05)\nn > m"), "True")

    def test_interrupt_right_after_begin_is_never_lost(self):
        self.session.run("import asyncio\nawait asyncio.sleep(0)")
        for moment in range(100):
            self.session.start("await asyncio.sleep(100)")
            limit = time.perf_counter() + moment * 1e-5  # a cell needs about 0.5 ms until it waits
            while time.perf_counter() < limit:
                pass
            self.session.interrupt()
            self.assertEqual(self.session.end()["status"], "interrupted")
        self.assertEqual(self.value("len(asyncio.all_tasks(asyncio.get_event_loop_policy().get_event_loop()))"), "0")

    def test_interrupt_of_computation_in_an_async_cell(self):
        self.session.start("import asyncio\nawait asyncio.sleep(0)\nprint('go')\nwhile True: pass")
        self.session.wait_for_text("stdout", "go")
        self.session.interrupt()
        self.assertEqual(self.session.end()["status"], "interrupted")
        self.assertEqual(self.value("await asyncio.sleep(0, 3)"), "3")

    def test_event_loop_that_user_code_left_running_does_no_harm(self):
        self.session.run("import asyncio\nawait asyncio.sleep(0)")
        self.session.run("asyncio._set_running_loop(asyncio.new_event_loop())")
        self.assertEqual(self.session.run("asyncio._set_running_loop(None)\n1")["stderr"], "")
        self.assertEqual(self.value("await asyncio.sleep(0, 2)"), "2")

    def test_closed_event_loop_is_replaced(self):
        self.session.run("import asyncio\nloop = asyncio.get_running_loop()\nawait asyncio.sleep(0)")
        self.session.run("loop.close()")
        self.assertEqual(self.value("await asyncio.sleep(0, 2)"), "2")

    def test_pending_tasks_are_cancelled_at_the_end(self):
        self.session.run("import asyncio\nasync def f():\n    try: await asyncio.sleep(100)\n"
                         "    finally: print('cancelled')\nasync def start():\n    t = asyncio.ensure_future(f())\n"
                         "    await asyncio.sleep(0)\n    return t\nt = await start()")
        self.session.channel.close()
        self.assertEqual(self.session.wait_for_exit(), 0)
        self.assertEqual((self.session.texts["stdout"], self.session.texts["stderr"]), (b"cancelled\n", b""))


class Interrupts(DriverTest):
    def interrupted(self, code):
        self.session.start(code)
        self.session.interrupt()
        return self.session.end()

    def test_interrupt_keeps_state(self):
        self.session.run("x = 5")
        end = self.interrupted("while True: pass")
        self.assertEqual((end["status"], end["kept"], end["error"]["name"]), ("interrupted", True, "KeyboardInterrupt"))
        self.assertEqual(self.value("x"), "5")

    def test_interrupt_right_after_begin_is_never_lost(self):
        for _ in range(100):
            self.assertEqual(self.interrupted("while True: pass")["status"], "interrupted")

    def test_interrupt_while_idle_is_ignored(self):
        for _ in range(20):
            self.session.interrupt()
            self.session.ask(op="ping")
        self.assertEqual(self.value("1"), "1")

    def test_handler_of_user_code_stays(self):
        self.session.run("import signal\nn = 0\ndef h(*a):\n    global n\n    n += 1\nsignal.signal(signal.SIGINT, h)")
        self.session.start("while n < 1: pass\nn")
        self.session.interrupt()
        self.assertEqual(self.session.end()["value"]["text/plain"], "1")
        self.session.interrupt()
        self.session.ask(op="ping")
        self.assertEqual(self.value("n"), "2")

    def test_loop_that_swallows_interrupts_goes_on(self):
        self.session.start("n = 0\nwhile n < 3:\n    try:\n        print('turn', n)\n        while True: pass\n"
                           "    except KeyboardInterrupt:\n        n += 1\nn")
        for turn in range(3):
            self.session.wait_for_text("stdout", "turn %d" % turn)
            self.session.interrupt()
        self.assertEqual(self.session.end()["value"]["text/plain"], "3")

    def test_default_handler_is_in_place_during_a_cell(self):
        self.assertEqual(self.value("import signal\nsignal.getsignal(2) is signal.default_int_handler"), "True")

    def test_exception_of_a_signal_handler_between_cells_is_printed(self):
        self.session.run("import signal\ndef h(*a): raise TimeoutError('late')\nsignal.signal(signal.SIGALRM, h)\n"
                         "signal.setitimer(signal.ITIMER_REAL, 0.05)")
        self.session.wait_for_text("stderr", "TimeoutError: late")
        self.assertEqual(self.value("1"), "1")

    def test_signal_handler_may_raise_an_error_of_the_system(self):
        self.session.run("import signal\ndef h(*a): open('/nonexistent')\nsignal.signal(signal.SIGUSR1, h)")
        os.kill(self.session.process.pid, signal.SIGUSR1)
        self.session.wait_for_text("stderr", "FileNotFoundError")
        self.assertEqual(self.value("1"), "1")

    def test_signal_handlers_that_raise_do_not_break_the_protocol(self):
        self.session.run("import signal\ndef h(*a): raise TimeoutError('tick')\nsignal.signal(signal.SIGALRM, h)\n"
                         "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)")
        for _ in range(300):
            end = self.session.run("display('a' * 5000)\n1")
            self.assertIn(end["status"], ("ok", "error"))
        for _ in range(100):
            if self.session.run("signal.setitimer(signal.ITIMER_REAL, 0)")["status"] == "ok":
                break
        self.assertEqual(self.value("1"), "1")

    def test_term_handler_that_exits_ends_an_idle_session(self):
        self.session.run("import signal, sys\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(4))")
        self.session.process.terminate()
        self.assertEqual(self.session.wait_for_exit(), 4)

    def test_sum_of_an_endless_iterator_is_ended_only_by_kill(self):
        self.session.start("import itertools\nsum(itertools.repeat(1))")
        self.session.interrupt()
        self.session.process.kill()
        self.assertIsNone(self.session.event())
        self.assertEqual(self.session.wait_for_exit(), -signal.SIGKILL)


class Input(DriverTest):
    def test_input_reads_stdin_twice(self):
        self.session.start("a = input('first? ')\nb = input()\na + b")
        self.session.wait_for_text("stdout", "first? ")
        self.session.process.stdin.write(b"x\ny\n")
        self.assertEqual(self.session.end()["value"]["text/plain"], "'xy'")

    def test_end_of_stdin_is_eoferror(self):
        self.session.process.stdin.close()
        self.assertEqual(self.session.error("input()")["name"], "EOFError")


class Hostile(DriverTest):
    """User code that changes what the driver might depend on."""

    def survives(self, code, check="6 * 7", value="42"):
        self.session.run(code)
        self.assertEqual(self.value(check), value)

    def test_closed_stdout_object(self):
        self.survives("import sys\nsys.stdout.close()\nsys.stderr.close()")

    def test_stdout_set_to_none(self):
        self.survives("import sys\nsys.stdout = sys.stderr = None")

    def test_replaced_stdout(self):
        self.survives("import io, sys\nsys.stdout = sys.stderr = io.StringIO()\nprint('x')",
                      "sys.stdout.getvalue()", repr("x\n"))

    def test_closed_descriptors(self):
        self.survives("import os\nos.close(0)\nos.close(1)\nos.close(2)")

    def test_changed_builtins(self):
        self.survives("import builtins\nfor n in list(vars(builtins)):\n"
                      "    if n not in ('__import__', 'repr') and n[0] != '_': delattr(builtins, n)")

    def test_builtins_that_raise(self):
        self.survives("import builtins\ndef bad(*a, **k): raise OSError(9, 'bad')\n"
                      "for n in ('len', 'repr', 'eval', 'compile', 'isinstance', 'getattr', 'print', 'map', 'sum'):\n"
                      "    setattr(builtins, n, bad)")

    def test_changed_os_functions(self):
        self.survives("import os, posix, time\ndef bad(*a, **k): raise OSError(9, 'bad')\n"
                      "for m in (os, posix):\n    m.read = m.write = m.getpid = m.close = m.dup2 = bad\n"
                      "time.time = time.perf_counter = bad")

    def test_names_of_modules_are_free(self):
        self.survives("sys = os = print = session = channel = main = None\ndisplay = 3")

    def test_cleared_sys_modules(self):
        self.survives("import sys\nsys.modules.clear()")
        self.assertEqual(self.session.error("1 / 0")["name"], "ZeroDivisionError")

    def test_cleared_meta_path(self):
        self.session.run("import sys\nsys.meta_path.clear()\nsys.path.clear()")
        self.session.run("1 / 0")
        self.assertEqual(self.value("1"), "1")

    def test_changed_default_encoding_of_stdout(self):
        self.survives("import sys\nsys.stdout.reconfigure(encoding='ascii')")

    def test_low_recursion_limit(self):
        self.survives("import sys\nsys.setrecursionlimit(60)")

    def test_small_limit_of_descriptors(self):
        session = self.open(before_exec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
        self.assertEqual(session.value("1"), "1")

    def test_threads_print_after_the_cell(self):
        self.session.run("import threading\ngo = threading.Event()\ndef f():\n    go.wait()\n    print('late')\n"
                         "threading.Thread(target=f).start()")
        self.session.run("go.set()")
        self.session.wait_for_text("stdout", "late")

    def test_threads_display_while_cells_run(self):
        self.session.run("import threading\ndef f():\n    for i in range(200): display('t' * 3000)\n"
                         "t = threading.Thread(target=f)\nt.start()")
        self.session.send(op="run", cell=2, code="t.join()\n1")
        displays = 0
        while True:
            event = self.session.event()
            displays += event["event"] == "display"
            if event["event"] == "end":
                break
        self.assertLessEqual(displays, 200)
        self.session.cell = 2
        self.assertEqual(self.value("2"), "2")

    def test_channel_is_not_inherited(self):
        self.assertEqual(self.value("import os, subprocess, sys\n"
                                    "subprocess.call([sys.executable, '-S', '-c', 'import os; os.write(3, b\"x\")'],"
                                    " stderr=subprocess.DEVNULL, close_fds=False)"), "1")
        self.assertEqual(self.value("sorted(map(int, os.listdir('/proc/self/fd')))[:5]")[:9], "[0, 1, 2,")

    def test_output_of_child_processes_interleaves(self):
        end = self.session.run("import os\nprint('a')\nos.system('echo b')\nprint('c')")
        self.assertEqual(end["stdout"], "a\nb\nc\n")

    def test_ctypes_output_is_flushed(self):
        end = self.session.run("import ctypes\nctypes.CDLL(None).printf(b'from C')")
        self.assertEqual(end["stdout"], "from C")

    def test_invalid_utf8_output_passes(self):
        self.session.run("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\n')")
        self.assertEqual(self.session.texts["stdout"], b"\xff\xfe\n")

    def test_surrogates_raise_as_in_a_script(self):
        session = self.open(environment={"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"})
        self.assertEqual(session.error("print('\\udc80')")["name"], "UnicodeEncodeError")

    def test_utf8_output_in_the_c_locale(self):
        session = self.open(environment={"LC_ALL": "C"})
        self.assertEqual(session.run("print('é')")["stdout"], "é\n")

    def test_kill_of_itself_ends_the_channel(self):
        self.session.start("import os\nos.kill(os.getpid(), 9)")
        self.assertIsNone(self.session.event())
        self.assertEqual(self.session.wait_for_exit(), -9)

    def test_os_exit_ends_the_channel(self):
        self.session.start("import os\nos._exit(5)")
        self.assertIsNone(self.session.event())
        self.assertEqual(self.session.wait_for_exit(), 5)

    def test_segfault_ends_the_channel(self):
        self.session.start("import ctypes\nctypes.string_at(0)")
        self.assertIsNone(self.session.event())
        self.assertEqual(self.session.wait_for_exit(), -signal.SIGSEGV)

    def test_deleted_working_directory(self):
        directory = os.path.join(Session.directory, "gone")
        os.mkdir(directory)
        session = self.open(cwd=directory)
        os.rmdir(directory)
        self.assertEqual(session.value("1 + 1"), "2")
        self.assertEqual(session.error("import os\nos.getcwd()")["name"], "FileNotFoundError")
        self.assertEqual(session.run("display(1)")["displays"][0]["data"], {"text/plain": "1"})
        self.assertEqual(session.value("import json\n5"), "5")

    def test_start_in_a_deleted_working_directory(self):
        directory = os.path.join(Session.directory, "gone at start")
        os.mkdir(directory)
        session = self.open(cwd=directory, before_exec=lambda: os.rmdir(directory))
        self.assertEqual(session.value("import json\n5"), "5")

    def test_missing_home(self):
        session = self.open(environment={"HOME": "/nonexistent"})
        self.assertEqual(session.value("5"), "5")

    def test_memory_error_under_a_limit_keeps_the_session(self):
        limit = 256 << 20
        session = self.open(before_exec=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        session.run("kept = 1")
        for code in ("x = bytearray(1 << 30)", "y = []\nwhile True: y.append(bytearray(1 << 20))",
                     "z = []\nwhile True: z.append([None])"):
            end = session.run(code)
            self.assertEqual((end["status"], end["error"]["name"], end["kept"]), ("error", "MemoryError", True))
            session.run("y = z = None")
        self.assertEqual(session.value("kept"), "1")

    def test_large_code(self):
        code = "x = '''" + "a" * 999_000 + "'''\nlen(x)"
        self.assertEqual(self.value(code), "999000")

    def test_code_with_nul_is_an_error_of_the_cell(self):
        end = self.session.run("x = 1\0")
        self.assertEqual(end["status"], "error")
        self.assertIn("null bytes", end["error"]["value"])

    def test_code_with_every_control_character(self):
        text = "".join([chr(code) for code in range(1, 256) if chr(code) not in "\r\\'"]) + "\u2028\U0001f600"
        self.assertEqual(self.value("len('''%s''')" % text), str(len(text)))

    def test_windows_line_ends(self):
        self.assertEqual(self.value("if True:\r\n    x = 'a'\r\nx;\r\nx"), "'a'")


class Forks(DriverTest):
    def test_child_that_falls_through_ends_like_a_script(self):
        end = self.session.run("import os\npid = os.fork()\nif pid:\n    status = os.waitpid(pid, 0)[1]\n"
                               "else:\n    print('child')\nstatus if pid else 'child value'")
        self.assertEqual((end["value"]["text/plain"], end["stdout"]), ("0", "child\n"))
        self.assertEqual(self.value("1"), "1")

    def test_child_that_raises_prints_its_traceback(self):
        end = self.session.run("import os\npid = os.fork()\nif not pid: raise KeyError('child')\n"
                               "os.waitpid(pid, 0)[1] >> 8")
        self.assertEqual(end["value"]["text/plain"], "1")
        self.assertIn("KeyError: 'child'", end["stderr"])

    def test_child_keeps_its_exit_status(self):
        self.assertEqual(self.value("import os, sys\npid = os.fork()\nif not pid: sys.exit(7)\n"
                                    "os.waitpid(pid, 0)[1] >> 8"), "7")

    def test_child_that_displays_writes_neither_events_nor_files(self):
        with temporary_directory() as directory:
            end = self.session.run("import os\npid = os.fork()\nif not pid:\n    display({'image/png': b'a'}, raw=True)"
                                   "\n    os._exit(0)\nos.waitpid(pid, 0)[1]",
                                   figures={"directory": directory, "prefix": "p"})
            self.assertEqual((end["displays"], end["value"]["text/plain"]), ([], "0"))
            self.assertEqual(os.listdir(directory), [])

    def test_no_warning_about_threads_at_fork(self):
        end = self.session.run("import os, warnings\nwarnings.simplefilter('error')\npid = os.fork()\n"
                               "if not pid: os._exit(0)\nos.waitpid(pid, 0)[1]")
        self.assertEqual((end["status"], end["stderr"]), ("ok", ""))


class Magics(DriverTest):
    def test_shell_line_inherits_the_streams(self):
        end = self.session.run("print('a')\n!echo b; echo c >&2; exit 3\nprint('d')")
        self.assertEqual((end["stdout"], end["stderr"]), ("a\nb\nd\n", "c\n[exit status 3]\n"))

    def test_shell_line_in_a_block_with_expressions(self):
        end = self.session.run("for i in range(2):\n    !echo {i + 1} $HOME {a,b} | sed \"s/'//\"",
                               env={"HOME": "/h"})
        self.assertEqual(end["stdout"].split()[:2], ["1", "/h"])
        self.assertEqual(end["stdout"].count("\n"), 2)

    def test_shell_line_continues_after_a_backslash(self):
        end = self.session.run("!echo a \\\n  b\nraise KeyError")
        self.assertEqual(end["stdout"], "a b\n")
        self.assertIn('File "<cell 1>", line 3', end["error"]["traceback"])

    def test_captured_lines(self):
        self.assertEqual(self.value("x = !printf 'a\\nb\\n'\nx"), "['a', 'b']")

    def test_strings_are_not_translated(self):
        self.assertEqual(self.value("s = '''\n!no\n%cd /\n'''\n!true\ns"), repr("\n!no\n%cd /\n"))

    def test_plain_code_is_not_translated(self):
        self.assertEqual(self.value("cd = 3\nx = (10\n%cd\n)\nx"), "1")

    def test_syntax_error_beside_a_shell_line(self):
        text = self.session.error("!echo no\nx = = 1")["traceback"]
        self.assertEqual(text.splitlines()[0], '  File "<cell 1>", line 2')
        self.assertNotIn("During handling", text)
        self.assertEqual(self.session.texts["stdout"], b"")

    def test_cd_env_who(self):
        end = self.session.run("%cd /usr\n%env DRIVER_TEST=5\n%who")
        self.assertEqual(end["stdout"], "/usr\nenv: DRIVER_TEST=5\nNo variables are defined.\n")
        self.assertEqual(self.value("import os\nos.getcwd(), os.environ['DRIVER_TEST']"), "('/usr', '5')")
        self.assertEqual(self.session.run("x = y = 1\n%who")["stdout"], "x  y\n")

    def test_time_and_timeit(self):
        end = self.session.run("%time x = sum(range(10))")
        self.assertIn("Wall time: ", end["stdout"])
        self.assertEqual(self.value("x"), "45")
        self.assertIn(" per loop ", self.session.run("%timeit -n 5 -r 2 sum(range(10))")["stdout"])

    def test_time_of_a_cell(self):
        end = self.session.run("%%time\ny = 2\ny + 1")
        self.assertEqual(end["value"]["text/plain"], "3")
        self.assertIn("Wall time: ", end["stdout"])
        self.assertIn("line 3, in <module>", self.session.error("%%time\n\n1 / 0")["traceback"])

    def test_bash_cell(self):
        end = self.session.run("%%bash\necho \"it's $0\"\nexit 2")
        self.assertEqual((end["stdout"], end["stderr"]), ("it's bash\n", "[exit status 2]\n"))

    def test_writefile_cell(self):
        with temporary_directory() as directory:
            self.session.run("%%%%writefile %s/a.txt\none\ntwo" % directory)
            with open(directory + "/a.txt") as file:
                self.assertEqual(file.read(), "one\ntwo")

    def test_pip_runs_the_module_of_this_interpreter(self):
        end = self.session.run("%pip --version")
        self.assertIn("python %s" % self.session.ready["version"].rpartition(".")[0],
                      end["stdout"] + end["stderr"].replace("No module named pip", "python %s" %
                                                            self.session.ready["version"].rpartition(".")[0]))

    def test_unknown_magic_names_the_known_ones(self):
        error = self.session.error("print('not run')\n%nope 1")
        self.assertIn("Unknown magic: %nope. Known: %pip, %cd,", error["value"])
        self.assertEqual(self.session.texts["stdout"], b"")
        self.assertIn("%%bash", self.session.error("%%nope\n1")["value"])

    def test_broken_format_is_a_plain_syntax_error(self):
        for code in ("x = %s", "x = 10\n% 3", "x = 1\n%"):
            self.assertIn("invalid syntax", self.session.error(code)["value"], code)

    def test_matplotlib_inline_is_ignored(self):
        self.assertEqual(self.session.run("%matplotlib inline")["status"], "ok")

    def test_interrupt_of_a_shell_line(self):
        self.session.start("!echo go; exec sleep 100")
        self.session.wait_for_text("stdout", "go")
        self.session.interrupt()
        self.assertEqual(self.session.end()["status"], "interrupted")


class Limits(DriverTest):
    def end_of(self, code, limit=0.1):
        return self.session.run(code, limit=limit)

    def test_cell_is_interrupted_at_its_limit_and_keeps_state(self):
        end = self.end_of("x = 5\nwhile True: pass")
        self.assertEqual((end["status"], end["kept"]), ("interrupted", True))
        self.assertEqual((end["error"]["name"], end["error"]["value"]),
                         ("KeyboardInterrupt", "maxRuntime of 0.1 s exceeded"))
        self.assertIn("while True: pass", end["error"]["traceback"])
        self.assertEqual(self.value("x"), "5")

    def test_sleep_is_interrupted(self):
        end = self.end_of("import time\ntime.sleep(60)")
        self.assertEqual(end["status"], "interrupted")
        self.assertLess(end["seconds"], 10)

    def test_begin_states_whether_the_limit_applies(self):
        self.session.send(op="run", cell=1, code="1", limit=9)
        self.assertTrue(self.session.event("begin")["limited"])
        self.session.event("end")
        self.session.send(op="run", cell=2, code="1")
        self.assertNotIn("limited", self.session.event("begin"))

    def test_nothing_is_left_of_the_limit_after_the_cell(self):
        self.assertEqual(self.end_of("1", limit=0.05)["status"], "ok")
        self.assertEqual(self.value("import signal, time\ntime.sleep(0.1)\n"
                                    "(signal.getsignal(signal.SIGALRM) == signal.SIG_DFL, signal.getitimer(0))"),
                         "(True, (0.0, 0.0))")

    def test_limit_at_the_end_of_a_cell_harms_nothing(self):
        for turn in range(200):
            end = self.end_of("for i in range(%d): pass" % (turn * 500), limit=0.002)
            self.assertIn(end["status"], ("ok", "interrupted"))
        self.assertEqual(self.value("1"), "1")

    def test_signal_of_user_code_has_precedence(self):
        self.session.run("import signal, time\nsignal.signal(signal.SIGALRM, lambda *a: print('own'))")
        self.session.send(op="run", cell=2, code="time.sleep(0.2)\nsignal.raise_signal(signal.SIGALRM)", limit=0.05)
        self.assertFalse(self.session.event("begin")["limited"])
        self.assertEqual(self.session.event("end")["status"], "ok")
        self.session.wait_for_text("stdout", "own")

    def test_signal_that_the_cell_takes_is_left_alone(self):
        self.end_of("import signal\nsignal.signal(signal.SIGALRM, print)\nsignal.setitimer(signal.ITIMER_REAL, 50)", 9)
        self.assertEqual(self.value("signal.getsignal(signal.SIGALRM) is print, signal.getitimer(0)[0] > 9"),
                         "(True, True)")

    def test_await_is_interrupted_and_background_tasks_go_on(self):
        self.session.run("import asyncio\nn = 0\nasync def count():\n    global n\n    while True:\n        n += 1\n"
                         "        await asyncio.sleep(0.001)\ntask = asyncio.create_task(count())\n"
                         "await asyncio.sleep(0)")
        end = self.end_of("await asyncio.sleep(60)")
        self.assertEqual((end["status"], end["error"]["value"]), ("interrupted", "maxRuntime of 0.1 s exceeded"))
        self.assertEqual(self.value("m = n\nawait asyncio.sleep(0.1)\nn > m, task.done()"), "(True, False)")

    def test_cell_that_swallows_the_interrupt_gets_another_one(self):
        end = self.end_of("import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    time.sleep(60)")
        self.assertEqual(end["status"], "interrupted")

    def test_interrupt_by_a_signal_has_no_limit_in_its_message(self):
        self.session.start("while True: pass", limit=60)
        self.session.interrupt()
        self.assertEqual(self.session.end()["error"]["value"], "")


class Idle(unittest.TestCase):
    def ends_as_idle(self, session):
        session.event("idle")
        self.assertIsNone(session.event())
        self.assertEqual(session.wait_for_exit(), 0)

    def test_session_without_requests_ends(self):
        with Session(idle=0.2) as session:
            self.ends_as_idle(session)

    def test_request_restarts_the_limit(self):
        with Session(idle=0.5) as session:
            start = time.monotonic()
            for _ in range(4):
                time.sleep(0.2)
                session.ask(op="ping")
            self.assertGreater(time.monotonic() - start, 0.5)
            self.ends_as_idle(session)

    def test_running_cell_is_not_idle(self):
        with Session(idle=0.2) as session:
            self.assertEqual(session.value("import time\ntime.sleep(0.5)\n1"), "1")
            self.ends_as_idle(session)

    def test_session_with_background_tasks_ends(self):
        with Session(idle=0.3) as session:
            session.run("import asyncio\nasync def work():\n    while True:\n        await asyncio.sleep(0.01)\n"
                        "task = asyncio.create_task(work())\nawait asyncio.sleep(0)")
            self.ends_as_idle(session)

    def test_exit_handlers_run(self):
        with Session(idle=0.3) as session:
            session.run("import atexit\natexit.register(print, 'bye')")
            self.ends_as_idle(session)
            self.assertEqual(session.texts["stdout"], b"bye\n")

    def test_channel_that_user_code_made_non_blocking_still_works(self):
        with Session(idle=0.3) as session:
            session.run("import os\nos.set_blocking(100, False)")
            self.assertEqual(session.value("1"), "1")
            self.ends_as_idle(session)

    def test_limit_is_not_in_the_environment(self):
        with Session(idle=5) as session:
            self.assertEqual(session.value("import os\n[n for n in os.environ if 'IDLE' in n]"), "[]")


class Cells(DriverTest):
    """A cell runs at most once, whoever sends it."""

    def test_begin_echoes_the_key(self):
        self.session.send(op="run", cell=1, key="ab", code="1")
        self.assertEqual(self.session.event("begin")["key"], "ab")

    def test_number_that_is_not_the_next_runs_nothing(self):
        self.session.run("x = 0")
        for number in (0, 1, 3, -1):
            self.session.send(op="run", cell=number, key="cd", code="x += 1")
            self.assertEqual(self.session.event(), {"event": "stale", "cell": number, "key": "cd", "last": 1})
        self.assertEqual(self.value("x"), "0")

    def test_one_of_two_cells_with_the_same_number_runs(self):
        self.session.send_line(b'{"op":"run","cell":1,"key":"a","code":"x = 1"}\n'
                               b'{"op":"run","cell":1,"key":"b","code":"x = 2"}')
        self.assertEqual(self.session.event("begin")["key"], "a")
        self.session.event("end")
        self.assertEqual(self.session.event("stale")["key"], "b")
        self.session.cell = 1
        self.assertEqual(self.value("x"), "1")


class Adoption(DriverTest):
    def adopt(self, **fields):
        self.session.send(**{"op": "adopt", "process": "proc_1_a", "cwd": "/", "env": {}, "idle": 0, "once": False,
                             **fields})

    def test_warm_interpreter_gets_its_process_id_and_limit(self):
        self.adopt()
        self.assertEqual(self.value("import os\nos.environ['DOCKBRIDGE_PROCESS']"), "'proc_1_a'")

    def test_warm_interpreter_gets_directory_and_environment(self):
        with temporary_directory() as path:
            self.adopt(cwd=path, env={"A": "é 😀"})
            self.assertEqual(self.value("import os\nos.getcwd(), os.environ['A']"),
                             repr((os.path.realpath(path), "é 😀")))

    def test_package_that_was_installed_in_the_meantime_is_found(self):
        with temporary_directory() as base:
            session = self.session = self.open(environment={"DOCKBRIDGE_PYTHON_WARM": "1", "PYTHONUSERBASE": base})
            packages = base + "/lib/python%s/site-packages" % ".".join(session.ready["version"].split(".")[:2])
            os.makedirs(packages)
            os.mkdir(base + "/source")
            for name, text in ((packages + "/a.pth", base + "/source\n"), (base + "/source/late.py", "x = 5\n")):
                with open(name, "w") as file:
                    file.write(text)
            self.adopt()
            self.assertEqual(self.value("import late\nlate.x"), "5")

    def test_warm_interpreter_may_end_after_one_cell(self):
        self.adopt(once=True)
        self.session.run("1")
        self.assertIsNone(self.session.event())

    def test_idle_limit_of_a_warm_interpreter(self):
        self.adopt(idle=300)
        self.session.run("import asyncio\nawait asyncio.sleep(0)")
        self.session.event("idle")
        self.assertEqual(self.session.wait_for_exit(), 0)


class Bootstrap(unittest.TestCase):
    def run_as(self, version):
        """Runs the bootstrap as if the interpreter had this version. Returns what it sent, and its exit status."""
        host, child = os.pipe()
        code = "import sys\nsys.version_info = %r\nexec(%r)" % (version, k_start)
        process = subprocess.Popen([k_interpreter, "-c", code, "/nonexistent"], preexec_fn=lambda: os.dup2(child, 3),
                                   close_fds=False, stderr=subprocess.DEVNULL)
        os.close(child)
        with os.fdopen(host) as events:
            return events.read(), process.wait()

    def test_old_interpreter_is_reported(self):
        for version in ((2, 7, 18, "final", 0), (3, 7, 17, "final", 0)):
            event, status = self.run_as(version)
            self.assertEqual(json.loads(event), {"event": "too_old", "version": "%d.%d.%d" % version[:3]})
            self.assertEqual(status, 1)

    def test_python_3_8_is_accepted(self):
        self.assertEqual(self.run_as((3, 8, 0, "final", 0)), ("", 1))

    def test_bytecode_is_stored_although_user_code_writes_none(self):
        with temporary_directory() as directory:
            install(directory, compiles=False)
            with Session(environment={"PYTHONDONTWRITEBYTECODE": "1"}, directory=directory) as session:
                self.assertEqual(session.value("import sys\nsys.dont_write_bytecode"), "True")
                session.error("1 / 0")
                self.assertEqual(session.value("sys.dont_write_bytecode"), "True")
            stored = sorted(name.partition(".")[0] for name in os.listdir(directory + "/__pycache__"))
            self.assertEqual(stored, ["dockbridge_driver", "dockbridge_rich"])


class Requests(DriverTest):
    def test_ping(self):
        self.assertEqual(self.session.ask(op="ping"), {"event": "pong", "request": 7})

    def test_bad_requests_are_answered(self):
        for line in (b"", b"{", b"[1]", b"\xff", b'{"op": "nope"}', b'{"op": "run", "cell": "a", "code": ""}',
                     b'{"op": "run", "cell": 1}', b"open('/etc/passwd')", b"[" * 5000):
            self.session.send_line(line)
            self.assertEqual(self.session.event()["event"], "bad_request", line)
        self.assertEqual(self.value("1"), "1")

    def test_requests_in_one_piece_are_answered_in_order(self):
        self.session.send_line(b'{"op": "ping", "request": 1}\n{"op": "ping", "request": 2}')
        self.assertEqual([self.session.event()["request"] for _ in range(2)], [1, 2])

    def test_history(self):
        self.session.run("x = 1")
        self.session.run("1 / 0")
        self.assertEqual(self.session.ask(op="history"), {
            "event": "history", "request": 7, "dropped": 0,
            "cells": [{"cell": 1, "code": "x = 1"}, {"cell": 2, "code": "1 / 0"}]})

    def test_history_is_bounded(self):
        for _ in range(18):
            self.session.run("'''%s''';" % ("a" * 1_000_000))
        reply = self.session.ask(op="history")
        self.assertEqual((reply["dropped"], [cell["cell"] for cell in reply["cells"]]), (2, list(range(3, 19))))

    def test_variables(self):
        self.session.run("import os\nn = 5\ns = 'a' * 500\nl = [1, 2]\n_hidden = 1\nclass A: pass\n"
                         "class Shaped:\n    shape = (2, 3)\n    nbytes = 48\n    def __repr__(self): return 'a\\nb'\n"
                         "t = Shaped()")
        reply = self.session.ask(op="variables")
        found = {entry["name"]: entry for entry in reply["variables"]}
        self.assertEqual(list(found), ["n", "s", "l", "A", "Shaped", "t"])
        self.assertEqual((found["n"]["type"], found["n"]["repr"]), ("int", "5"))
        self.assertEqual((found["s"]["len"], len(found["s"]["repr"])), (500, 80))
        self.assertEqual((found["l"]["len"], found["l"]["repr"]), (2, "[1, 2]"))
        self.assertEqual(found["t"], {"name": "t", "type": "__main__.Shaped", "shape": [2, 3], "bytes": 48,
                                      "repr": "a b"})
        self.assertEqual(reply["total"], 6)

    def test_at_most_200_variables(self):
        self.session.run("for i in range(300): globals()['v%d' % i] = i")
        reply = self.session.ask(op="variables")
        self.assertEqual((len(reply["variables"]), reply["total"]), (200, 301))

    def test_variable_whose_repr_hangs_can_be_interrupted(self):
        self.session.run("class A:\n    def __repr__(self):\n        print('in repr')\n        while True: pass\n"
                         "a = A()\nb = 2")
        self.session.send(op="variables", request=3)
        self.session.wait_for_text("stdout", "in repr")
        self.session.interrupt()
        reply = self.session.event("variables")
        self.assertTrue(reply["interrupted"])
        self.assertEqual(reply["variables"][1]["name"], "a")
        self.assertEqual(self.value("b"), "2")

    def test_end_of_the_channel_runs_exit_handlers(self):
        self.session.run("import atexit\natexit.register(print, 'bye')")
        self.session.channel.close()
        self.assertEqual(self.session.wait_for_exit(), 0)
        self.assertEqual(self.session.texts["stdout"], b"bye\n")


class OneOff(DriverTest):
    def last(self, code, session=None):
        session = session or self.session
        end = session.run(code, last=True)
        self.assertIsNone(session.event())
        return end, session.wait_for_exit()

    def test_success(self):
        end, status = self.last("print(1)\n2")
        self.assertEqual((end["value"]["text/plain"], end["stdout"], status), ("2", "1\n", 0))

    def test_exception(self):
        end, status = self.last("1 / 0")
        self.assertEqual((end["status"], status), ("error", 1))

    def test_exit_status(self):
        for code, expected in (("3", 3), ("", 0), ("'text'", 1), ("None", 0), ("True", 1)):
            self.assertEqual(self.last("import sys\nsys.exit(%s)" % code, self.open())[1], expected, code)

    def test_exit_handlers_and_threads_finish(self):
        self.last("import atexit, threading, time\natexit.register(print, 'bye')\n"
                  "def f():\n    time.sleep(0.1)\n    print('thread')\nthreading.Thread(target=f).start()")
        self.assertEqual(self.session.texts["stdout"], b"thread\nbye\n")

    def test_environment_selects_it(self):
        session = self.open(environment={"DOCKBRIDGE_PYTHON_ONCE": "1"})
        session.run("x = 1")
        self.assertIsNone(session.event())
        self.assertEqual(session.wait_for_exit(), 0)


class EndOfOneOff(unittest.TestCase):
    """The process ends early only if its interpreter has nothing left to do."""

    def end(self, code):
        with temporary_directory() as directory, Session({"DOCKBRIDGE_PYTHON_ONCE": "1"}, cwd=directory) as session:
            end = session.run(code)
            status = session.wait_for_exit()
            files = {}
            for name in os.listdir(directory):
                with open(os.path.join(directory, name)) as file:
                    files[name] = file.read()
            return end["status"], status, session.texts["stdout"].decode(), files

    def test_plain_code_keeps_its_status_and_output(self):
        self.assertEqual(self.end("print('out', end='')"), ("ok", 0, "out", {}))
        self.assertEqual(self.end("raise SystemExit(3)")[1], 3)
        self.assertEqual(self.end("1/0")[1], 1)

    def test_a_file_that_was_not_closed_is_complete(self):
        self.assertEqual(self.end("f = open('x', 'w'); f.write('text');")[3], {"x": "text"})

    def test_a_file_in_a_container_is_complete(self):
        self.assertEqual(self.end("held = [open('x', 'w')]; held[0].write('text');")[3], {"x": "text"})

    def test_functions_of_atexit_run(self):
        self.assertIn("bye", self.end("import atexit; atexit.register(print, 'bye');")[2])

    def test_other_writers_of_stdout_are_flushed(self):
        self.assertIn("more", self.end("out = open(1, 'w', closefd=False); out.write('more');")[2])

    def test_threads_finish(self):
        code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.2), print('late'))).start()"
        self.assertIn("late", self.end(code)[2])

    def test_buffers_of_c_are_written(self):
        code = "import ctypes; ctypes.CDLL(None).printf(b'from c');"
        self.assertIn("from c", self.end(code)[2])


class Sources(unittest.TestCase):
    def test_python_3_8_can_parse_the_driver(self):
        for name in os.listdir(k_sources):
            if name.endswith(".py"):
                with open(os.path.join(k_sources, name)) as file:
                    ast.parse(file.read(), name, feature_version=(3, 8))

    def test_start_imports_nothing_new(self):
        with Session() as session:
            session.send(op="run", cell=1, code="import sys\nsorted(sys.modules)")
            session.event("begin")
            used = set(eval(session.event("end")["value"]["text/plain"]))
        empty = set(eval(subprocess.check_output(
            [k_interpreter, "-c", "import sys; print(list(sys.modules))"], universal_newlines=True)))
        self.assertEqual(used - empty, {"dockbridge_driver", "_ast"})


if __name__ == "__main__":
    unittest.main()
