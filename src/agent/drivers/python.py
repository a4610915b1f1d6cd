"""Driver of a Python session: runs cells of code that the host sends over a socket.

Descriptor 3 is the socket, called the channel. Requests and events are JSON objects, one a line. stdin, stdout and
stderr belong to user code, and so does the module __main__, in which the cells run. The driver makes no threads.

User code may replace anything: builtins, os.write, sys.stdout, signal handlers. Therefore this module keeps its own
references. Start-up imports only modules that an empty interpreter has loaded already; python_rich.py, python_magics.py
and python_ipython.py are loaded on first use as dockbridge_rich, dockbridge_magics and dockbridge_ipython.

Signals are blocked except while user code runs and while the driver waits for a request. So an interrupt or a signal
handler of the user never breaks off the work of the driver itself.
"""
import builtins
import sys

# Functions defined below look builtins up in this copy, so user code may change or delete the originals.
__builtins__ = dict(builtins.__dict__)

from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder
from _signal import (ITIMER_REAL, SIG_BLOCK, SIG_DFL, SIG_SETMASK, SIGALRM, SIGINT, default_int_handler, getitimer,
                     getsignal, pthread_sigmask, setitimer, signal, sigtimedwait, valid_signals)
from _thread import allocate_lock
from os import environ
from posix import (_exit, chdir, close, dup, dup2, fstat, getpid, listdir, read, register_at_fork, set_blocking, stat,
                   write)
from time import perf_counter

k_channel_descriptor = 3
k_lowest_moved_descriptor = 100  # above what user code and its children expect to find open
k_read_bytes = 65536
k_max_text = 100_000  # characters of one text in an event
k_max_history = 16 << 20  # characters of source that are kept
k_reserve_bytes = 4 << 20  # released after a MemoryError, so that it can be reported
k_limit_interval = 2  # seconds between the interrupts of a cell that exceeds its limit

k_would_block = 11  # EAGAIN

k_channel_errors = (9, 32, 104)  # EBADF, EPIPE, ECONNRESET
k_only_ast = 0x400  # ast.PyCF_ONLY_AST
k_top_level_await = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
k_coroutine = 0x80  # inspect.CO_COROUTINE

# Types whose repr() is their whole representation.
k_plain_types = frozenset((int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range,
                           type, type(None), type(Ellipsis), type(len), type(lambda: None)))
k_json_names = {"__builtins__": {}, "true": True, "false": False, "null": None}
k_all_signals = valid_signals()

modules = sys.modules
directory = __file__.rpartition("/")[0]
namespace = modules["__main__"].__dict__
driver_module = modules["dockbridge_driver"]


# JSON. Requests come from the host, which is trusted, so eval can read them. See parse().

def encode_text(text):
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return '"' + text + '"'
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON readers reject
        text = text.encode("utf-8", "backslashreplace").decode()
    try:
        return import_once("_json").encode_basestring_ascii(text)
    except Exception:  # not there, or user code has damaged the import system
        return '"' + "".join(map(encode_character, text)) + '"'


def encode_character(character):
    if character in '"\\':
        return "\\" + character
    return character if character >= " " and character != "\x7f" else "\\u%04x" % ord(character)


def encode(value):
    if isinstance(value, str):
        return encode_text(str.__str__(value))
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, dict):
        return "{" + ",".join([encode_text(str(key)) + ":" + encode(value[key]) for key in value]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([encode(item) for item in value]) + "]"
    return encode_text(str(value))


def parse(line):
    """Reads a request. The host escapes control characters, so JSON strings are valid Python strings as well."""
    request = eval(line.decode(), k_json_names)
    if type(request) is not dict:
        raise ValueError("A request is a JSON object")
    return request


class Channel:
    """Exchanges lines with the host. Only the process that was started as driver uses it, never a forked child."""

    def __init__(self):
        self.owner = getpid()
        self.descriptor = self.move(k_channel_descriptor)
        self.lock = allocate_lock()  # display() may be called in a thread
        self.received = b""
        self.is_lost = False
        self.idle_limit = int(environ.pop("DOCKBRIDGE_IDLE_LIMIT_MS", "0")) / 1000  # 0: no limit
        self.is_idle = False  # the limit was reached
        register_at_fork(after_in_child=self.close_in_child)

    @staticmethod
    def move(old):
        """Moves the channel to a high descriptor that programs started by user code do not inherit."""
        set_blocking(old, True)
        new = k_lowest_moved_descriptor
        try:
            while is_open(new):
                new += 1
            dup2(old, new, False)
        except OSError:  # the limit of descriptors is lower
            new = dup(old)
        close(old)
        return new

    def close_in_child(self):
        try:
            close(self.descriptor)
        except OSError:
            pass

    def is_ours(self):
        return getpid() == self.owner

    def send(self, message):
        if not self.is_ours():
            return
        data = (encode(message) + "\n").encode()
        allowed = pthread_sigmask(SIG_BLOCK, ())
        try:
            pthread_sigmask(SIG_SETMASK, k_all_signals)
            with self.lock:
                self.write(data)
        finally:
            pthread_sigmask(SIG_SETMASK, allowed)

    def write(self, data):
        """Writes everything. extend and map run in C: no signal handler runs between a write and its bookkeeping."""
        written = []
        postponed = None
        while not self.is_lost and sum(written) < len(data):
            try:
                written.extend(map(write, (self.descriptor,), (data[sum(written):],)))
            except BaseException as error:
                if is_channel_error(error):
                    self.is_lost = True
                else:  # raised by a signal handler: another thread of user code received a signal
                    postponed = error
        if postponed:
            raise postponed

    def receive(self):
        """Returns the next line, or None at the end of the channel and at the idle limit."""
        while True:
            line, newline, rest = self.received.partition(b"\n")
            if newline:
                self.received = rest
                return line
            piece = self.read() if self.is_ours() and not self.is_lost else b""
            if not piece:
                return None
            self.received += piece

    def read(self):
        """Waits for data. Signal handlers of user code run meanwhile, and so do background tasks of asyncio."""
        pieces = []
        self.is_idle = False
        start = perf_counter()
        while not pieces:
            error = call_with_signals(self.read_piece, pieces)
            if isinstance(error, SystemExit):  # a handler of SIGTERM, for example
                raise error
            if is_channel_error(error):
                return b""
            if self.is_idle or is_timeout(error):
                # The keeper has set the limit on the socket. User code may have made it non-blocking.
                if self.is_idle or self.idle_limit and perf_counter() - start >= 0.9 * self.idle_limit:
                    self.send({"event": "idle"})
                    return b""
                set_blocking(self.descriptor, True)
                continue
            if error is not None:
                rich().print_error(error)
        return pieces[0]

    def read_piece(self, pieces):
        if session.loop is not None:
            rich().run_loop_until_request()
        if self.is_idle:
            return
        pieces.extend(map(read, (self.descriptor,), (k_read_bytes,)))


def is_open(descriptor):
    try:
        fstat(descriptor)
        return True
    except OSError:
        return False


def is_channel_error(error):
    """Whether the host is gone or user code has closed the channel. Signal handlers may raise any other error."""
    return isinstance(error, OSError) and error.errno in k_channel_errors


def is_timeout(error):
    return isinstance(error, OSError) and error.errno == k_would_block


class History:
    """Keeps the source of cells up to a limit, and registers it with linecache for tracebacks and inspect."""

    def __init__(self):
        self.sources = {}
        self.size = 0
        self.dropped = 0

    def add(self, number, source):
        self.size += len(source) - len(self.sources.pop(number, ""))
        self.sources[number] = source
        self.register(number, source)
        while self.size > k_max_history:
            oldest = next(iter(self.sources))
            self.size -= len(self.sources.pop(oldest))
            self.dropped += 1
            cache = self.line_cache()
            if cache is not None:
                cache.pop(file_name(oldest), None)

    def register_all(self):
        for number, source in self.sources.items():
            self.register(number, source)

    def register(self, number, source):
        cache = self.line_cache()
        if cache is not None:
            name = file_name(number)
            cache[name] = (len(source), None, [line + "\n" for line in source.split("\n")], name)

    @staticmethod
    def line_cache():
        """The cache of the module linecache; None while nothing has imported it."""
        cache = getattr(modules.get("linecache"), "cache", None)
        return cache if type(cache) is dict else None


def file_name(number):
    return "<cell %d>" % number


class Finder:
    """Finds the other modules of the driver, and lets python_rich.py adapt a few modules when they are imported."""

    own_modules = frozenset(("dockbridge_rich", "dockbridge_magics", "dockbridge_ipython"))
    adapted_modules = frozenset(("linecache", "matplotlib", "dockbridge_matplotlib", "IPython.core.display",
                                 "IPython.core.display_functions"))

    def find_spec(self, name, path=None, target=None):
        if name in self.own_modules:
            return PathFinder.find_spec(name, [directory])
        if name in self.adapted_modules:
            return rich().find_adapted(name, path)
        return None


loaded = {}


def load(name):
    """Returns another module of the driver, whatever user code has done to sys.meta_path and sys.modules."""
    if name not in loaded:
        loaded[name] = with_original_builtins(load_module, name)
    return loaded[name]


def import_once(name):
    """Returns a module of the standard library that is written in C."""
    if name not in loaded:
        loaded[name] = with_original_builtins(__import__, name)
    return loaded[name]


def load_module(name):
    modules["dockbridge_driver"] = driver_module  # where the other modules look for it
    spec = PathFinder.find_spec(name, [directory])
    module = modules[name] = module_from_spec(spec)
    writes_no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, False  # see bootstrap.py
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes_no_bytecode
    return module


def with_original_builtins(function, *arguments):
    """Calls a function with the builtins that the standard library needs, whatever user code has done to them."""
    names = builtins.__dict__
    changed = dict(names)
    names.update(__builtins__)
    try:
        return function(*arguments)
    finally:
        names.update(changed)
        for name in __builtins__:
            if name not in changed:
                del names[name]


def rich():
    return load("dockbridge_rich")


def ignore_signal(number, frame):
    """Handles SIGINT between cells."""


class Session:
    """State that lasts from cell to cell."""

    def __init__(self):
        self.allowed_mask = pthread_sigmask(SIG_BLOCK, k_all_signals) - {SIGINT}
        self.are_signals_blocked = True
        self.cell = 0  # the running cell or the last one
        self.figures = {}  # where files of the cell go: {"directory": ..., "prefix": ...}
        self.loop = None  # event loop of asyncio, made by the first cell with a top-level await
        self.future_flags = 0  # from __future__ import annotations lasts
        self.interrupts = []  # SIGINTs that the running cell got while it awaited
        self.interrupt = None  # interrupts a cell that awaits; called as a signal handler
        self.limit = Limit()
        self.is_warm = environ.pop("DOCKBRIDGE_PYTHON_WARM", "") == "1"  # started before its process, see adopt()
        self.site_directories = find_site_directories() if self.is_warm else {}
        self.hidden_names = ()  # names in __main__ that are not variables of the user
        self.ends_after_cell = environ.pop("DOCKBRIDGE_PYTHON_ONCE", "") == "1"
        self.has_ipython = (environ.pop("DOCKBRIDGE_PYTHON_IPYTHON", "never") == "auto"
                            and PathFinder.find_spec("IPython") is not None)
        self.reserve = bytes(k_reserve_bytes)  # calloc: costs no memory while untouched
        self.streams = (sys.stdout, sys.stderr)

    def renew_reserve(self):
        if self.reserve is None:
            try:
                self.reserve = bytes(k_reserve_bytes)
            except MemoryError:  # as long as user code keeps what it has allocated
                pass

    def allow_signals(self):
        self.are_signals_blocked = False
        pthread_sigmask(SIG_SETMASK, self.allowed_mask)

    def block_all_signals(self):
        if not self.are_signals_blocked:
            self.allowed_mask = pthread_sigmask(SIG_BLOCK, ())  # user code may have changed it
            self.are_signals_blocked = True
        pthread_sigmask(SIG_SETMASK, k_all_signals)

    @staticmethod
    def enable_interrupts():
        if getsignal(SIGINT) is ignore_signal:
            sigtimedwait((SIGINT,), 0)  # discards one that arrived before the cell
            signal(SIGINT, default_int_handler)

    @staticmethod
    def disable_interrupts():
        if getsignal(SIGINT) is default_int_handler:
            signal(SIGINT, ignore_signal)


class Limit:
    """Interrupts a cell after a number of seconds by SIGALRM, unless user code uses that signal itself."""

    def __init__(self):
        self.seconds = 0  # 0: none for the running cell
        self.is_exceeded = False

    def set(self, limit):
        is_free = getsignal(SIGALRM) is SIG_DFL and getitimer(ITIMER_REAL) == (0, 0)
        self.seconds = limit if limit and is_free else 0
        self.is_exceeded = False

    def message(self):
        return "maxRuntime of %g s exceeded" % self.seconds

    def start(self):
        if self.seconds:
            signal(SIGALRM, self.interrupt)
            setitimer(ITIMER_REAL, self.seconds, k_limit_interval)

    def stop(self):
        if self.is_own():
            setitimer(ITIMER_REAL, 0)

    def clear(self):
        """Restores the handler while signals are blocked."""
        if self.is_own():
            setitimer(ITIMER_REAL, 0)  # an interrupt may have prevented stop()
            sigtimedwait((SIGALRM,), 0)
            signal(SIGALRM, SIG_DFL)

    def is_own(self):
        """Whether the cell has left the handler in place."""
        return self.seconds and getattr(getsignal(SIGALRM), "__self__", None) is self

    def interrupt(self, number, frame):
        self.is_exceeded = True
        if session.interrupt is None:
            raise KeyboardInterrupt(self.message())
        session.interrupt(number, frame)


def compile_cell(source, name):
    """Returns code objects to evaluate in order. The value of the last one is the value of the cell."""
    try:
        tree = parse_cell(source, name)
    except SyntaxError as error:
        if "!" not in source and "%" not in source:
            raise
        tree, source = load("dockbridge_magics").parse_translated(source, name, error)
    flags = k_top_level_await | session.future_flags
    last = tree.body[-1] if tree.body else None
    if type(last).__name__ != "Expr" or ends_with_semicolon(source, last):
        return [compile_tree(tree, name, "exec", flags)]
    tree.body.pop()
    head = compile_tree(tree, name, "exec", flags)
    flags |= session.future_flags
    return [head, compile_tree(import_once("_ast").Expression(last.value), name, "eval", flags)]


def parse_cell(source, name):
    if source.lstrip().startswith("%%"):
        raise SyntaxError("cell magic")
    return compile(source, name, "exec", k_only_ast | k_top_level_await | session.future_flags, True)


def compile_tree(tree, name, mode, flags):
    code = compile(tree, name, mode, flags, True)
    if "__future__" in code.co_names:
        session.future_flags |= code.co_flags & __import__("__future__").annotations.compiler_flag
    return code


def ends_with_semicolon(source, statement):
    """Whether a semicolon follows the last statement. Only brackets, comments and semicolons can follow it."""
    lines = source.split("\n")[statement.end_lineno - 1:]
    lines[0] = lines[0].encode()[statement.end_col_offset:].decode()
    return any(";" in line.partition("#")[0] for line in lines)


def evaluate(codes):
    if any([code.co_flags & k_coroutine for code in codes]):
        return rich().evaluate_in_loop(codes)
    value = None
    for code in codes:
        value = eval(code, namespace)
    return value


def present_value(value, event):
    """Adds the value of a cell to its event and to the names _, __ and ___."""
    if value is None:
        return
    names = builtins.__dict__
    names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), value
    if type(value) not in k_plain_types:
        return rich().present(value, event, "value")
    text = repr(value)
    event["value"] = {"text/plain": text[:k_max_text]}
    if len(text) > k_max_text:
        event["cut"] = {"text/plain": len(text)}


def present_error(error, event):
    """Adds an exception to the event of a cell. Returns the exit status that a script with this error has."""
    event["status"] = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
    if session.limit.is_exceeded and event["status"] == "interrupted" and not error.args:
        error.args = (session.limit.message(),)
    if isinstance(error, MemoryError):
        session.reserve = None
    try:
        event["error"] = with_original_builtins(rich().describe_error, error)
    except Exception:  # no memory, or user code has damaged the standard library
        name = type(error).__name__
        event["error"] = {"name": name, "value": "", "traceback": name + "\n"}
    if not isinstance(error, SystemExit):
        return 130 if event["status"] == "interrupted" else 1
    code = error.code
    return 0 if code is None else code & 0xff if isinstance(code, int) else 1


def flush_streams():
    for stream in (sys.__dict__.get("stdout"), sys.__dict__.get("stderr")) + session.streams:
        try:
            stream.flush()
        except Exception:  # closed, or replaced by something without flush
            pass
    if "ctypes" in modules:
        try:
            modules["ctypes"].CDLL(None).fflush(None)
        except Exception:
            pass


def run_cell(request):
    """Runs a cell. Returns the exit status that a script with the same code has."""
    number = session.cell = request["cell"]
    source = request["code"]
    if "\r" in source:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    session.figures = request.get("figures") or {}
    history.add(number, source)
    flush_streams()
    begin = {"event": "begin", "cell": number}
    if "key" in request:
        begin["key"] = request["key"]
    if "first" in request:
        begin["first"] = request["first"]  # start of the code, for other servers
    session.limit.set(request.get("limit"))
    if request.get("limit"):
        begin["limited"] = bool(session.limit.seconds)
    end = {"event": "end", "cell": number, "status": "ok"}
    start = perf_counter()
    exit_status = run_protected(begin, run_user_code, request, source, end)
    if isinstance(exit_status, BaseException):
        exit_status = present_error(exit_status, end)
    end["seconds"] = round(perf_counter() - start, 6)
    end["kept"] = True
    try:
        channel.send(end)
    except Exception as error:  # no memory
        channel.send({"event": "end", "cell": number, "status": "error", "seconds": end["seconds"], "kept": True,
                      "error": {"name": type(error).__name__, "value": "Cannot send the result", "traceback": ""}})
    session.renew_reserve()
    return exit_status


def run_protected(event, function, *arguments):
    """Sends an event, if any, and calls a function that runs user code. Returns its result or its exception."""
    session.enable_interrupts()
    if event:
        channel.send(event)  # an interrupt that arrives from here on ends the function
    result = call_with_signals(function, *arguments)
    if isinstance(result, BaseException) and not channel.is_ours():
        raise result
    session.limit.clear()
    session.disable_interrupts()
    return result


def call_with_signals(function, *arguments):
    """Calls a function while signals are allowed. Returns its result or its exception.

    A signal handler may raise an exception at any moment until signals are blocked again, even while an earlier
    exception is handled.
    """
    result = None
    is_started = False
    while not is_started or not session.are_signals_blocked:
        try:
            try:
                if not is_started:
                    is_started = True
                    session.allow_signals()
                    result = function(*arguments)
                session.block_all_signals()
            except BaseException as error:
                result = error
                session.block_all_signals()
        except BaseException as error:
            result = error
    return result


def run_user_code(request, source, end):
    exit_status = 0
    try:
        session.limit.start()
        if request.get("env"):
            environ.update(request["env"])
        if request.get("cwd"):
            chdir(request["cwd"])
        ipython = load_ipython() if request.get("ipython", True) else None
        if ipython is not None:
            ipython.run(source, end)
        else:
            present_value(evaluate(compile_cell(source, file_name(session.cell))), end)
    except BaseException as error:
        if not channel.is_ours():
            leave_forked_child(error)
        exit_status = present_error(error, end)
    if not channel.is_ours():
        leave_forked_child(None)
    if "matplotlib" in modules:
        rich().show_open_figures()
    flush_streams()
    session.limit.stop()
    return exit_status


def load_ipython():
    """Returns the module that runs cells in IPython; None if it is not to be used or does not work."""
    if session.has_ipython:
        try:
            return load("dockbridge_ipython")
        except Exception as error:
            session.has_ipython = False
            rich().print_error(error, "IPython is not used because it failed to start:\n")
    return None


def leave_forked_child(error):
    """Ends a child that user code forked and that has reached the end of the cell, as a script ends there."""
    if error is None or isinstance(error, SystemExit):
        raise SystemExit(error and error.code)
    rich().print_error(error)
    raise SystemExit(1)


def answer(request):
    """Answers a request. Returns None, or the exit status if the process is to end."""
    operation = request.get("op")
    if operation == "run":
        if type(request.get("cell")) is not int or type(request.get("code")) is not str:
            raise ValueError("run: cell must be a number and code a text")
        if request["cell"] != session.cell + 1:  # another server has sent a cell with this number
            channel.send({"event": "stale", "cell": request["cell"], "key": request.get("key"), "last": session.cell})
            return None
        exit_status = run_cell(request)
        if not request.get("last") and not session.ends_after_cell:
            return None
        if not is_finalization_needed():
            run_protected(None, namespace.clear)  # writes what objects have buffered for stdout and stderr
            flush_streams()
            _exit(exit_status)
        return exit_status
    if operation == "adopt":
        adopt(request)
        return None
    reply = {"request": request.get("request")}
    if operation == "ping":
        reply["event"] = "pong"
    elif operation == "history":
        reply["event"] = "history"
        reply["cells"] = [{"cell": cell, "code": history.sources[cell]} for cell in history.sources]
        reply["dropped"] = history.dropped
    elif operation == "variables":
        rich().list_variables(reply)
    else:
        raise ValueError("Unknown operation: %s" % (operation,))
    channel.send(reply)


def is_finalization_needed():
    """Whether the end of the interpreter may have an effect that user code relies on. If not, the process can end 2 ms
    earlier. Descriptors that are open may belong to files with unwritten data."""
    try:
        return (session.loop is not None or "threading" in modules or import_once("atexit")._ncallbacks() > 0
                or any([is_foreign_extension(module) for module in list(modules.values())])
                or any([number not in (0, 1, 2, channel.descriptor) and is_open(number)
                        for number in map(int, listdir("/proc/self/fd"))]))
    except Exception:  # user code has damaged something, or /proc is missing
        return True


def is_foreign_extension(module):
    """Whether a module is native code that does not belong to the standard library. It may use buffers of C."""
    name = getattr(module, "__file__", None)
    return isinstance(name, str) and name.endswith(".so") and "/lib-dynload/" not in name


def adopt(request):
    """Takes over what a warm interpreter could not know when it started. It has no reply."""
    environ["DOCKBRIDGE_PROCESS"] = request["process"]
    environ.update(request["env"])
    channel.idle_limit = request["idle"] / 1000
    session.ends_after_cell = request["once"]
    try:
        chdir(request["cwd"])
    except OSError:  # removed at this moment
        pass
    site_directories = find_site_directories()
    for path in site_directories:
        if site_directories[path] != session.site_directories.get(path):
            modules["site"].addsitedir(path)  # a package was installed in the meantime


def find_site_directories():
    """Returns the directories of installed packages with the times of their latest changes."""
    found = {}
    site = modules.get("site")  # None with the option -S
    if site is not None:
        paths = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
        for path in paths:
            try:
                found[path] = stat(path).st_mtime_ns
            except OSError:
                pass
    return found


def serve():
    """Answers requests until the channel ends. Returns the exit status."""
    while True:
        line = channel.receive()
        if line is None:
            return 0
        try:
            exit_status = answer(parse(line))
        except Exception as error:
            channel.send({"event": "bad_request", "message": "%s: %s" % (type(error).__name__, error)})
            continue
        if exit_status is not None:
            return exit_status


def prepare_interpreter():
    """Restores what a script expects to find, and installs what the driver adds."""
    if directory in sys.path:
        sys.path.remove(directory)
    sys.argv = [""]
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)  # changed by bootstrap.py
    namespace.pop("sys", None)  # left by the command that imports the driver
    sys.meta_path.insert(0, Finder())
    builtins.display = display
    for name in ("exit", "quit"):  # the originals close stdin
        if hasattr(builtins, name):
            setattr(builtins, name, sys.exit)
    for stream in session.streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
    if not callable(getsignal(SIGINT)) or getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, ignore_signal)


def display(*objects, **options):
    """Shows objects in the result of the cell: text, HTML, images, figures."""
    rich().display(*objects, **options)


def main():
    prepare_interpreter()
    channel.send({"event": "ready", "version": "%d.%d.%d" % sys.version_info[:3], "ipython": session.has_ipython,
                  "executable": sys.executable, "prefix": sys.prefix})
    if session.is_warm:
        evaluate(compile_cell("0", "<warm-up>"))  # initializes the compiler
    exit_status = serve()
    session.enable_interrupts()
    session.allow_signals()
    if session.loop is not None:
        rich().close_loop()
    raise SystemExit(exit_status)


session = Session()
channel = Channel()
history = History()
# Before Python 3.10 a function uses the builtins of its caller if both have the same globals. Here they differ.
eval("main()", {"main": main})
