"""Starts the driver of Python sessions as a keeper does, and speaks its protocol."""
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

k_sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/agent/drivers")
with open(os.path.join(k_sources, "bootstrap.py")) as bootstrap:
    k_start = bootstrap.read()
k_deadline = 30
k_interpreter = os.environ.get("DOCKBRIDGE_TEST_PYTHON", sys.executable)


def install(directory, compiles=True):
    """Copies the driver to a directory under the names that the agent gives its files, and compiles it."""
    for name in os.listdir(k_sources):
        if name.startswith("python") and name.endswith(".py"):
            installed = "dockbridge_" + (name[len("python_"):] if name != "python.py" else "driver.py")
            shutil.copy(os.path.join(k_sources, name), os.path.join(directory, installed))
    if not compiles:
        return
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([k_interpreter, "-m", "compileall", "-q", directory], check=True, env=environment)


class Session:
    """A driver process. Every wait ends with an AssertionError after a deadline."""

    directory = None

    def __init__(self, environment=None, cwd=None, before_exec=lambda: None, options=(), idle=0,
                 directory=None):
        if Session.directory is None:
            Session.temporary = tempfile.TemporaryDirectory()
            Session.directory = Session.temporary.name
            install(Session.directory)
        host, child = socket.socketpair()
        number = child.fileno()
        if idle:
            child.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(idle), int(idle % 1 * 1e6)))
            environment = {**(environment or {}), "DOCKBRIDGE_IDLE_LIMIT_MS": str(int(idle * 1000))}

        def prepare():
            os.dup2(number, 3)
            before_exec()

        variables = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
        variables.update(environment or {})
        arguments = [k_interpreter, *options, "-c", k_start, directory or Session.directory]
        self.process = subprocess.Popen(arguments, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, close_fds=False, preexec_fn=prepare, env=variables,
                                        cwd=cwd)
        child.close()
        self.channel = host
        self.received = b""
        self.texts = {"stdout": b"", "stderr": b""}
        self.cell = 0
        self.ready = self.event("ready")

    def close(self):
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def send(self, **request):
        self.send_line(json.dumps(request, ensure_ascii=False).replace("\x7f", "\\u007f").encode())

    def send_line(self, line):
        self.channel.sendall(line + b"\n")

    def start(self, code, **fields):
        """Sends a cell and waits until it has begun."""
        self.cell += 1
        self.send(op="run", cell=self.cell, code=code, **fields)
        begin = self.event("begin")
        assert begin["cell"] == self.cell, begin

    def run(self, code, **fields):
        """Runs a cell. Returns its end, to which the displays, stdout and stderr of the cell are added."""
        self.read_outputs()
        self.texts = {"stdout": b"", "stderr": b""}
        self.start(code, **fields)
        return self.end()

    def end(self):
        displays = []
        while True:
            event = self.event()
            if event["event"] == "end":
                break
            assert event["event"] == "display", event
            displays.append(event)
        self.read_outputs()
        event["displays"] = displays
        for name in self.texts:
            event[name] = self.texts[name].decode("utf-8", "backslashreplace")
        return event

    def value(self, code, **fields):
        """Returns the text of the value of a cell."""
        end = self.run(code, **fields)
        assert end["status"] == "ok", end
        return end.get("value", {}).get("text/plain")

    def error(self, code, **fields):
        end = self.run(code, **fields)
        assert end["status"] == "error", end
        return end["error"]

    def ask(self, **request):
        self.send(request=7, **request)
        event = self.event()
        assert event.get("request") == 7, event
        return event

    def event(self, kind=None):
        """Returns the next event; None at the end of the channel."""
        limit = time.monotonic() + k_deadline
        while b"\n" not in self.received:
            if not self.wait(limit, channel=True):
                return None
        line, _, self.received = self.received.partition(b"\n")
        event = json.loads(line.decode())
        assert kind is None or event["event"] == kind, event
        return event

    def wait(self, limit, channel):
        """Reads what is there. Returns whether the channel is open."""
        streams = {self.process.stdout.fileno(): "stdout", self.process.stderr.fileno(): "stderr"}
        for number in self.closed_streams():
            streams.pop(number, None)
        descriptors = list(streams) + ([self.channel.fileno()] if channel else [])
        ready = select.select(descriptors, [], [], max(0, limit - time.monotonic()))[0]
        assert ready, "deadline exceeded; outputs so far: %r" % self.texts
        for number in ready:
            if number == self.channel.fileno():
                try:
                    piece = self.channel.recv(1 << 20)
                except ConnectionResetError:
                    piece = b""
                if not piece:
                    return False
                self.received += piece
            else:
                self.read_stream(number, streams[number])
        return True

    def closed_streams(self):
        return self.__dict__.setdefault("closed", set())

    def read_stream(self, number, name):
        piece = os.read(number, 1 << 20)
        self.texts[name] += piece
        if not piece:
            self.closed_streams().add(number)

    def read_outputs(self):
        """Reads what the process has written to stdout and stderr until now."""
        for stream, name in ((self.process.stdout, "stdout"), (self.process.stderr, "stderr")):
            while stream.fileno() not in self.closed_streams() and select.select([stream], [], [], 0)[0]:
                self.read_stream(stream.fileno(), name)

    def wait_for_text(self, name, text):
        limit = time.monotonic() + k_deadline
        while text.encode() not in self.texts[name]:
            self.wait(limit, channel=False)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def wait_for_exit(self):
        """Reads all output and returns the exit status."""
        limit = time.monotonic() + k_deadline
        while len(self.closed_streams()) < 2:
            self.wait(limit, channel=False)
        return self.process.wait(k_deadline)


@contextlib.contextmanager
def temporary_directory():
    with tempfile.TemporaryDirectory() as path:
        yield path
