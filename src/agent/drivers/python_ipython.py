"""Runs the cells of a Python session in IPython's shell. The driver loads this module at the first cell if it is to."""
import sys
import warnings

driver = sys.modules["dockbridge_driver"]
rich = driver.rich()

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config


class Compiler(CachingCompiler):
    def get_code_name(self, *unused):
        return driver.file_name(driver.session.cell)


class ValueHook(DisplayHook):
    """Keeps the representation of the last value of a cell."""

    bundle = None

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.bundle = (format_dict, md_dict)

    def finish_displayhook(self):
        pass


class Publisher(DisplayPublisher):
    """Sends what IPython displays to the host."""

    def publish(self, data, metadata=None, **unused):
        rich.display(data, raw=True, metadata=metadata)

    def clear_output(self, wait=False):
        pass


class Shell(InteractiveShell):
    compiler_class = Type(Compiler)
    displayhook_class = Type(ValueHook)
    display_pub_class = Type(Publisher)

    def _showtraceback(self, *unused):
        """The driver formats exceptions itself."""


def open_shell():
    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "NoColor"
    shell = Shell.instance(config=settings, user_module=sys.modules["__main__"])
    shell.loop_runner = rich.run_in_loop
    shell.user_ns["exit"] = shell.user_ns["quit"] = sys.exit
    driver.session.hidden_names = frozenset(shell.user_ns_hidden) | {"exit", "quit"}
    warnings.filterwarnings("ignore", message="To exit: use 'exit'")
    return shell


shell = open_shell()


def run(source, event):
    shell.displayhook.bundle = None
    driver.session.interrupts = []
    result = shell.run_cell(source, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    if type(error).__name__ == "CancelledError" and driver.session.interrupts:
        error = KeyboardInterrupt().with_traceback(error.__traceback__)
    if error is not None:
        raise error
    if shell.displayhook.bundle is not None:
        rich.put_bundle(event, "value", *shell.displayhook.bundle)
