"""Parts of the driver of Python sessions that most cells do not need. The driver loads this module on first use.

Values and figures become MIME bundles, exceptions become text, variables become a list. The event loop of asyncio and
the adaptation of imported modules (matplotlib, IPython) are here as well.
"""
import sys

driver = sys.modules["dockbridge_driver"]
__builtins__ = driver.__builtins__

from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder
from _signal import SIGINT, default_int_handler, getsignal, set_wakeup_fd, signal
from os import environ, makedirs, path, strerror
from posix import O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY, close, getpid, open as open_file, unlink, write

channel, session, history = driver.channel, driver.session, driver.history

k_max_text = driver.k_max_text
k_max_variables = 200
k_max_variable_repr = 80
k_max_name_attempts = 10_000
k_report_delay = 0.1  # seconds that other tasks have to retrieve the exception of a background task

k_methods = {
    "text/html": "_repr_html_", "text/markdown": "_repr_markdown_", "text/latex": "_repr_latex_",
    "application/json": "_repr_json_", "application/javascript": "_repr_javascript_",
    "application/pdf": "_repr_pdf_", "image/svg+xml": "_repr_svg_", "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
}
k_extensions = {
    "text/html": "html", "application/json": "json", "application/javascript": "js", "application/pdf": "pdf",
    "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp",
}
k_cut_types = ("text/plain", "text/markdown", "text/latex")  # other long texts go to files


# Errors

def describe_error(error):
    name = type(error).__name__
    try:
        value = str(error)
    except Exception:
        value = "<exception str() failed>"
    result = {"name": name, "value": value[:k_max_text]}
    if isinstance(error, SystemExit):
        code = error.code
        result["code"] = 0 if code is None else int(code) if isinstance(code, int) else 1
        text = "%s: %s\n" % (name, value) if value else name + "\n"
    else:
        text = format_error(error)
    cut = {}
    if len(value) > k_max_text:
        cut["value"] = len(value)
    if len(text) > k_max_text:
        cut["traceback"] = len(text)
        text = text[:k_max_text // 2] + "\n[...]\n" + text[7 - k_max_text // 2:]
    result["traceback"] = text
    if cut:
        result["cut"] = cut
    return result


def format_error(error):
    import linecache
    import traceback
    if driver.file_name(session.cell) not in linecache.cache:
        history.register_all()
    report = traceback.TracebackException(type(error), error, first_user_entry(error))
    remove_driver_frames(report)
    return "".join(report.format())


def first_user_entry(error):
    """Skips the frames that lead to the cell: those of the driver, of IPython or of asyncio."""
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename.startswith("<cell "):
            return entry
        entry = entry.tb_next
    if isinstance(error, SyntaxError) and str(error.filename).startswith("<cell "):
        return None  # the cell has not been compiled
    entry = error.__traceback__
    while entry is not None and is_driver_file(entry.tb_frame.f_code.co_filename):
        entry = entry.tb_next
    return entry


def is_driver_file(name):
    return name.startswith(driver.directory + "/dockbridge_")


def remove_driver_frames(report):
    pending = [report]
    seen = set()
    while pending:
        item = pending.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        if item.stack is not None:
            item.stack[:] = [frame for frame in item.stack if not is_driver_file(frame.filename)]
        pending += [item.__cause__, item.__context__]
        pending += getattr(item, "exceptions", None) or []


def print_error(error, heading=""):
    try:
        text = heading + format_error(error)
    except Exception:
        text = "%s%s\n" % (heading, type(error).__name__)
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:  # user code closed it
        pass


# Values and display

def display(*objects, raw=False, metadata=None, **unused):
    for value in objects if channel.is_ours() else ():
        event = {"event": "display", "cell": session.cell}
        if raw:
            put_bundle(event, "data", value, metadata)
        else:
            present(value, event, "data", metadata)
        if "data" in event:
            send_display(event)


def send_display(event):
    driver.flush_streams()
    channel.send(event)


def present(value, event, field, metadata=None):
    """Adds the representations of a value to an event; none if the value displays itself."""
    if call_method(value, "_ipython_display_", default=NotImplemented) is not NotImplemented:
        return
    data, own_metadata = make_bundle(value)
    put_bundle(event, field, data, {**own_metadata, **(metadata or {})})


def make_bundle(value):
    data, metadata = {}, {}
    bundle = call_method(value, "_repr_mimebundle_", include=None, exclude=None)
    if type(bundle) is tuple:
        bundle, metadata = bundle
    for kind in k_methods:
        if bundle and kind in bundle or kind == "image/jpeg" and "image/png" in data:
            continue
        content = call_method(value, k_methods[kind])
        if type(content) is tuple:
            content, metadata[kind] = content
        if content is not None:
            data[kind] = content
    data.update(bundle or {})
    if is_figure(value):
        data["image/png"] = draw_figure(value)
        shown_figures.append(value)
    if "text/plain" not in data:
        data["text/plain"] = repr(value)
    return data, metadata


def call_method(value, name, default=None, **arguments):
    """Calls a method with which an object represents itself. Its exceptions are printed and do not fail the cell."""
    if isinstance(value, type):
        return default
    try:
        if getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
            return default  # an object that has every attribute, such as a mock
        method = getattr(value, name, None)
    except Exception:  # an object that computes its attributes
        return default
    if not callable(method):
        return default
    try:
        return method(**arguments)
    except NotImplementedError:
        return default
    except Exception as error:
        print_error(error)
        return default


def put_bundle(event, field, data, metadata):
    contents, cut = {}, {}
    for kind in data:
        content = data[kind]
        if content is None:
            continue
        kind = str(kind)
        is_text = kind.startswith("text/") or kind == "image/svg+xml" or kind.startswith("application/") \
            and kind != "application/pdf"
        if isinstance(content, (bytes, bytearray, memoryview)):
            contents[kind] = save_file(bytes(content), kind)
            continue
        if not is_text:
            contents[kind] = save_file(decode_base64(content), kind)
            continue
        if not isinstance(content, str):
            content = to_json(content)
        if len(content) <= k_max_text:
            contents[kind] = content
        elif kind in k_cut_types:
            contents[kind] = content[:k_max_text]
            cut[kind] = len(content)
        else:
            contents[kind] = save_file(content.encode("utf-8", "backslashreplace"), kind)
    event[field] = contents
    if cut:
        event["cut"] = cut
    if metadata:
        event["metadata"] = metadata


def decode_base64(content):
    from binascii import a2b_base64
    return a2b_base64(str(content))


def to_json(value):
    from json import dumps
    return dumps(value, default=str)


def save_file(content, kind):
    """Writes data that is not text to a file. Returns its path, or the reason why there is none."""
    extension = k_extensions.get(kind) or ("txt" if kind.startswith("text/") else "json" if "json" in kind else "bin")
    result = {"bytes": len(content)}
    if content.startswith(b"\x89PNG") and len(content) >= 24:
        result["width"] = int.from_bytes(content[16:20], "big")
        result["height"] = int.from_bytes(content[20:24], "big")
    prefix = session.figures.get("prefix") or "cell-%d-%d" % (getpid(), session.cell)
    for directory in (session.figures.get("directory"), "/tmp"):
        if directory:
            try:
                result["path"] = write_new_file(directory, prefix, extension, content)
                result.pop("error", None)
                return result
            except OSError as error:
                result["error"] = "Cannot write %s to %s: %s" % (extension, directory, strerror(error.errno))
    return result


def write_new_file(directory, prefix, extension, content):
    makedirs(directory, exist_ok=True)
    for number in range(1, k_max_name_attempts):
        name = path.join(path.abspath(directory), "%s-%d.%s" % (prefix, number, extension))
        try:
            file = open_file(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
            break
        except FileExistsError:
            if number == k_max_name_attempts - 1:
                raise
    try:
        rest = memoryview(content)
        while len(rest):
            rest = rest[write(file, rest):]
    except BaseException:
        unlink(name)
        raise
    finally:
        close(file)
    return name


# Figures of matplotlib

shown_figures = []  # figures of the running cell that need not be shown at its end


def is_figure(value):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def draw_figure(figure):
    from io import BytesIO
    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def show_figure(figure):
    if figure.axes or figure.lines or figure.texts or figure.images:
        display(figure)


def show_open_figures():
    """Shows and closes the figures that are open, in the order of their numbers."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    for manager in helpers.Gcf.get_all_fig_managers() if helpers is not None else ():
        figure = manager.canvas.figure
        try:
            if not any([figure is shown for shown in shown_figures]):
                show_figure(figure)
        except Exception as error:
            print_error(error)
        helpers.Gcf.destroy(manager.num)
    shown_figures.clear()


class MatplotlibBackend:
    """Loader of the module dockbridge_matplotlib, the backend that shows figures in the result of the cell."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        from matplotlib.backend_bases import FigureManagerBase, _Backend
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        class FigureManager(FigureManagerBase):
            def show(self):
                show_figure(self.canvas.figure)
                shown_figures.append(self.canvas.figure)

        class Backend(_Backend):
            pass

        Backend.__module__ = module.__name__
        Backend.FigureCanvas = FigureCanvasAgg
        Backend.FigureManager = FigureManager
        _Backend.export(Backend)
        module.show = lambda *unused, **options: show_open_figures()


# Adaptation of modules when they are imported

def find_adapted(name, search_path):
    if name == "dockbridge_matplotlib":
        return ModuleSpec(name, MatplotlibBackend())
    spec = PathFinder.find_spec(name, search_path)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def execute_and_adapt(module):
            del spec.loader.exec_module
            if name == "matplotlib":
                import_matplotlib(execute, module)
                return
            execute(module)
            if name == "linecache":
                history.register_all()
            elif "display" in vars(module) and not session.has_ipython:
                module.display = driver.display

        spec.loader.exec_module = execute_and_adapt
    return spec


def import_matplotlib(execute, module):
    """Selects the backend by the environment, but only during the import: child processes do not have the backend."""
    chosen = environ.get("MPLBACKEND")
    if chosen is None or chosen.lower() == "agg":
        environ["MPLBACKEND"] = "module://dockbridge_matplotlib"
    try:
        execute(module)
        from warnings import filterwarnings  # figures are shown at the end of the cell even if user code selects Agg
        filterwarnings("ignore", ".*(non-GUI backend|is non-interactive)", UserWarning)
    finally:
        if chosen is None:
            environ.pop("MPLBACKEND", None)
        else:
            environ["MPLBACKEND"] = chosen


# Variables

def list_variables(reply):
    variables = []
    names = [name for name in list(driver.namespace)
             if not name.startswith("_") and type(driver.namespace[name]) is not type(sys)
             and name not in session.hidden_names]
    reply.update(event="variables", variables=variables, total=len(names))

    def describe_all():
        for name in names[:k_max_variables]:
            variables.append({"name": name})
            describe_variable(variables[-1], driver.namespace[name])

    if driver.run_protected(None, describe_all) is not None:
        reply["interrupted"] = True


def describe_variable(entry, value):
    """Adds one fact after the other, so that an interrupt keeps what is known. User code may run in each of them."""
    kind = type(value)
    entry["type"] = kind.__name__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__qualname__)
    for fact, find in (("shape", find_shape), ("len", len), ("bytes", find_size), ("repr", short_repr)):
        try:
            if fact != "len" or "shape" not in entry and not isinstance(value, type):
                found = find(value)
                if found is not None:
                    entry[fact] = found
        except Exception:
            pass


def find_shape(value):
    shape = None if isinstance(value, type) else getattr(value, "shape", None)
    return [int(size) for size in shape] if isinstance(shape, tuple) else None


def find_size(value):
    size = None if isinstance(value, type) else getattr(value, "nbytes", None)
    return int(size) if type(size) is int else sys.getsizeof(value)


def short_repr(value):
    if type(value) in driver.k_plain_types or isinstance(value, (str, bytes)):
        from reprlib import Repr
        limits = Repr()
        limits.maxstring = limits.maxother = limits.maxlong = k_max_variable_repr
        limits.maxlist = limits.maxtuple = limits.maxdict = limits.maxset = 20
        text = limits.repr(value)
    else:
        text = str.__str__(repr(value))
    text = " ".join(text.split())
    return text if len(text) <= k_max_variable_repr else text[:k_max_variable_repr - 3] + "..."


# Event loop of asyncio. It runs during cells with a top-level await and while the driver waits for a request.
# Background tasks pause during other cells, so that those can call asyncio.run().

def evaluate_in_loop(codes):
    import asyncio  # takes long, and an interrupt meanwhile must not leave a coroutine behind
    return run_in_loop(evaluate_all(codes))


def run_in_loop(coroutine):
    """Runs a cell with a top-level await as a task of the session's event loop."""
    import asyncio
    loop, task = open_loop(asyncio), None
    interrupts = session.interrupts = []

    def interrupt(number, frame):
        """Cancels the cell, not a background task that happens to run. A second interrupt is raised anywhere."""
        interrupts.append(number)
        if task is None:
            return  # cancelled as soon as it exists
        if asyncio.current_task(loop) is task or len(interrupts) > 1:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(task.cancel)

    session.interrupt = interrupt
    # A signal that arrives right before the loop waits must wake it, so it writes to the loop's own pipe.
    pipe = getattr(loop, "_csock", None)
    earlier_pipe = set_wakeup_fd(pipe.fileno(), warn_on_full_buffer=False) if pipe else -1
    try:
        if getsignal(SIGINT) is default_int_handler:
            signal(SIGINT, interrupt)
        task = loop.create_task(coroutine)
        if interrupts:
            task.cancel()
        return loop.run_until_complete(task)
    except asyncio.CancelledError as error:
        if interrupts:
            raise KeyboardInterrupt().with_traceback(error.__traceback__) from None
        raise
    finally:
        session.interrupt = None
        if getsignal(SIGINT) is interrupt:
            signal(SIGINT, default_int_handler)
        if not getattr(loop, "_signal_handlers", None):  # those of user code need the pipe
            set_wakeup_fd(earlier_pipe)
        if task is None:
            coroutine.close()
        elif not task.done():
            task.cancel()


async def evaluate_all(codes):
    value = None
    for code in codes:
        value = eval(code, driver.namespace)
        if code.co_flags & driver.k_coroutine:
            value = await value
    return value


def open_loop(asyncio):
    loop = session.loop
    if loop is None or loop.is_closed():
        loop = session.loop = asyncio.new_event_loop()
        loop.set_task_factory(make_task)
    asyncio.set_event_loop(loop)
    return loop


def make_task(loop, coroutine, **options):
    from asyncio import Task
    task = Task(coroutine, loop=loop, **options)
    task.add_done_callback(report_later)
    return task


def report_later(task):
    if not task.cancelled() and getattr(task, "_log_traceback", False):
        task.get_loop().call_later(k_report_delay, report_task, task)


def report_task(task):
    """Prints the exception of a task if no other task has retrieved it."""
    if getattr(task, "_log_traceback", False):
        print_error(task.exception(), "Exception in a background task:\n")


def run_loop_until_request():
    """Runs background tasks until the channel is readable."""
    import asyncio
    loop = session.loop
    if loop.is_closed() or asyncio._get_running_loop() is not None:  # user code has left another loop running
        return
    def end_idle_session():
        channel.is_idle = True
        loop.stop()

    loop.add_reader(channel.descriptor, loop.stop)
    timer = loop.call_later(channel.idle_limit, end_idle_session) if channel.idle_limit else None
    try:
        loop.run_forever()
    finally:
        loop.remove_reader(channel.descriptor)
        if timer is not None:
            timer.cancel()


def close_loop():
    """Cancels the background tasks at the end of the process, as asyncio.run() does."""
    import asyncio
    loop = session.loop
    if loop.is_closed():
        return
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=1))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
