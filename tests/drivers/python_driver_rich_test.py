"""Tests of the driver of Python sessions that need numpy, pandas, matplotlib and IPython."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_session import Session, temporary_directory


class RichTest(unittest.TestCase):
    maxDiff = None
    environment = {}

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(temporary_directory())

    def setUp(self):
        self.session = self.open(self.environment)

    def open(self, environment):
        session = Session(environment={"MPLCONFIGDIR": self.directory, "IPYTHONDIR": self.directory, **environment})
        self.addCleanup(session.close)
        return session

    def run_cell(self, code):
        end = self.session.run(code, figures={"directory": self.directory, "prefix": self.id().rpartition(".")[2]})
        self.assertEqual((end["status"], end["stderr"]), ("ok", ""), end)
        return end

    def images(self, code):
        """Returns the sizes of the images that a cell shows, in order."""
        images = [event["data"].get("image/png") for event in self.run_cell(code)["displays"]]
        for image in images:
            with open(image["path"], "rb") as file:
                content = file.read()
            self.assertEqual((content[:4], len(content)), (b"\x89PNG", image["bytes"]))
        return [(image["width"], image["height"]) for image in images]


k_figures = """
import matplotlib.pyplot as plt
def figure(width, height):
    fig = plt.figure(figsize=(width, height), dpi=100)
    fig.add_axes([0, 0, 1, 1])
    return fig
plt.rcParams["savefig.bbox"] = None
"""


class Matplotlib(RichTest):
    def test_figures_open_at_the_end_are_shown_and_closed(self):
        images = self.images(k_figures + "a = figure(8, 2)\nb = figure(2, 8)")
        self.assertEqual([width > height for width, height in images], [True, False])
        self.assertEqual(self.images("plt.get_fignums()"), [])

    def test_show_keeps_the_order_with_displays(self):
        end = self.run_cell(k_figures + "figure(2, 2)\nplt.show()\ndisplay(1)\nf = figure(2, 2)")
        self.assertEqual([sorted(event["data"]) for event in end["displays"]],
                         [["image/png", "text/plain"], ["text/plain"], ["image/png", "text/plain"]])

    def test_figure_as_value_is_shown_once(self):
        end = self.run_cell(k_figures + "f = figure(2, 2)\nf")
        self.assertEqual(end["displays"], [])
        self.assertEqual(end["value"]["image/png"]["path"],
                         "%s/%s-1.png" % (self.directory, self.id().rpartition(".")[2]))

    def test_show_of_a_figure_shows_it_once(self):
        self.assertEqual(len(self.images(k_figures + "f = figure(2, 2)\nf.show()")), 1)

    def test_figure_is_shown_although_user_code_selects_agg(self):
        self.assertEqual(len(self.images("import matplotlib\nmatplotlib.use('Agg')\n" + k_figures +
                                         "f = figure(2, 2)\nplt.show()")), 1)

    def test_figure_is_shown_although_the_cell_fails(self):
        end = self.session.run(k_figures + "figure(2, 2)\n1 / 0")
        self.assertEqual((end["status"], len(end["displays"])), ("error", 1))
        os.unlink(end["displays"][0]["data"]["image/png"]["path"])

    def test_empty_figure_is_not_shown(self):
        self.assertEqual(self.images(k_figures + "plt.figure()"), [])

    def test_child_processes_do_not_inherit_the_backend(self):
        end = self.run_cell(k_figures + "import os, subprocess, sys\nsubprocess.check_output([sys.executable, '-c', "
                            "'import matplotlib.pyplot as p; print(p.get_backend())'], text=True)")
        self.assertEqual(end["value"]["text/plain"].lower(), "'agg\\n'")

    def test_chosen_backend_of_the_environment_is_respected(self):
        session = self.open({"MPLBACKEND": "svg"})
        self.assertEqual(session.value("import matplotlib.pyplot as p\np.get_backend()"), "'svg'")

    def test_large_figure_is_intact(self):
        (width, height), = self.images(k_figures + "import numpy as np\nf = figure(20, 20)\n"
                                       "f.axes[0].imshow(np.random.rand(1500, 1500, 3))\nplt.show()")
        self.assertGreater(width * height, 1_000_000)


class Tables(RichTest):
    def test_pandas_table_is_text_and_html(self):
        end = self.run_cell("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
        self.assertEqual(end["value"]["text/plain"], "   a\n0  1\n1  2")
        self.assertIn("<table", end["value"]["text/html"])

    def test_variables_have_shapes_and_sizes(self):
        self.run_cell("import numpy as np, pandas as pd\na = np.zeros((3, 4))\nd = pd.DataFrame({'a': [1, 2]})")
        found = {entry["name"]: entry for entry in self.session.ask(op="variables")["variables"]}
        self.assertEqual((found["a"]["type"], found["a"]["shape"], found["a"]["bytes"]), ("numpy.ndarray", [3, 4], 96))
        self.assertEqual(found["d"]["shape"], [2, 1])

    def test_numpy_scalar_is_a_value(self):
        self.assertEqual(self.run_cell("import numpy as np\nnp.float64(1.5)")["value"]["text/plain"], "1.5")


class DisplayOfIPython(RichTest):
    def test_it_reaches_the_host_without_the_shell(self):
        end = self.run_cell("from IPython.display import display, HTML, Image\ndisplay(HTML('<b>x</b>'))")
        self.assertEqual(end["displays"][0]["data"]["text/html"], "<b>x</b>")

    def test_image_goes_to_a_file(self):
        end = self.run_cell("from IPython.display import Image\n"
                            "Image(bytes.fromhex('89504e470d0a1a0a0000000d494844520000000300000002') + b'rest')")
        image = end["value"]["image/png"]
        self.assertEqual((image["width"], image["height"], image["bytes"]), (3, 2, 28))


class IPythonShell(RichTest):
    environment = {"DOCKBRIDGE_PYTHON_IPYTHON": "auto"}

    def test_ready_says_so(self):
        self.assertTrue(self.session.ready["ipython"])
        self.assertFalse(self.open({"DOCKBRIDGE_PYTHON_IPYTHON": "never"}).ready["ipython"])

    def test_value_and_state(self):
        self.run_cell("x = 20")
        self.assertEqual(self.run_cell("x + 1")["value"], {"text/plain": "21"})
        self.assertEqual(self.run_cell("_ + 1")["value"], {"text/plain": "22"})
        self.assertNotIn("value", self.run_cell("x;"))

    def test_output_has_no_prompts(self):
        self.assertEqual(self.run_cell("print('a')\n5")["stdout"], "a\n")

    def test_error_has_a_plain_traceback(self):
        self.session.run("def f():\n    return 1 / 0")
        end = self.session.run("f()")
        self.assertEqual((end["error"]["name"], end["stderr"], end["stdout"]), ("ZeroDivisionError", "", ""))
        self.assertTrue(end["error"]["traceback"].startswith(
            'Traceback (most recent call last):\n  File "<cell 2>", line 1, in <module>\n    f()\n'))
        self.assertIn('File "<cell 1>", line 2, in f', end["error"]["traceback"])

    def test_syntax_error(self):
        text = self.session.error("x = = 1")["traceback"]
        self.assertEqual(text.splitlines()[:3], ['  File "<cell 1>", line 1', "    x = = 1", "        ^"])

    def test_sys_exit_keeps_the_session(self):
        end = self.session.run("import sys\nsys.exit(3)")
        self.assertEqual((end["error"]["name"], end["error"]["code"], end["stderr"]), ("SystemExit", 3, ""))
        self.assertEqual(self.session.error("exit()")["code"], 0)
        self.run_cell("1")

    def test_display_and_html(self):
        end = self.run_cell("from IPython.display import HTML\ndisplay(HTML('<b>'), 3)")
        self.assertEqual(end["displays"][0]["data"]["text/html"], "<b>")
        self.assertEqual(end["displays"][1]["data"], {"text/plain": "3"})

    def test_magics(self):
        self.assertEqual(self.run_cell("!echo hi")["stdout"].strip(), "hi")
        self.assertEqual(self.run_cell("x = !echo a\nx[0]")["value"]["text/plain"], "'a'")
        self.assertEqual(self.run_cell("%%bash\necho b")["stdout"].strip(), "b")

    def test_figures(self):
        self.assertEqual(len(self.images(k_figures + "figure(2, 2)\nplt.show()\nfigure(2, 2)")), 2)

    def test_await_and_background_task(self):
        self.run_cell("import asyncio\nasync def f():\n    await asyncio.sleep(0.05)\n    print('ran')\n"
                      "t = asyncio.ensure_future(f())\nawait asyncio.sleep(0)")
        self.session.wait_for_text("stdout", "ran")

    def test_interrupts(self):
        for code in ("while True: pass", "import asyncio\nawait asyncio.sleep(100)"):
            self.session.start("print('go')\n" + code)
            self.session.wait_for_text("stdout", "go")
            self.session.interrupt()
            self.assertEqual(self.session.end()["status"], "interrupted", code)
            self.session.texts["stdout"] = b""
        self.assertEqual(self.run_cell("1")["value"], {"text/plain": "1"})

    def test_variables_are_those_of_the_user(self):
        self.run_cell("x = 1")
        self.assertEqual([entry["name"] for entry in self.session.ask(op="variables")["variables"]], ["x"])

    def test_no_history_file(self):
        self.run_cell("1")
        found = [name for _, _, names in os.walk(self.directory) for name in names if name.endswith(".sqlite")]
        self.assertEqual(found, [])

    def test_broken_ipython_is_not_used(self):
        os.makedirs(self.directory + "/broken/IPython")
        with open(self.directory + "/broken/IPython/__init__.py", "w") as file:
            file.write("raise ImportError('broken')")
        session = self.open({"DOCKBRIDGE_PYTHON_IPYTHON": "auto", "PYTHONPATH": self.directory + "/broken"})
        end = session.run("1 + 1")
        self.assertEqual(end["value"], {"text/plain": "2"})
        self.assertIn("IPython is not used because it failed to start", end["stderr"])

    def test_missing_home(self):
        session = Session(environment={"DOCKBRIDGE_PYTHON_IPYTHON": "auto", "HOME": "/proc/none"})
        self.addCleanup(session.close)
        self.assertEqual(session.value("2"), "2")


if not hasattr(unittest.TestCase, "enterClassContext"):  # before Python 3.11
    def enter_class_context(cls, context):
        value = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return value
    RichTest.enterClassContext = classmethod(enter_class_context)


if __name__ == "__main__":
    unittest.main()
