"""Starts the driver of shells as a keeper does, and speaks its protocol."""
import json
import os
import signal
import socket
import struct
import subprocess

from driver_session import Session, k_sources

k_start = '. "$1/shell.sh"; shift; eval "$__dockbridge_start"'


def processes_below(process):
    """The process and everything that it started."""
    found = [process]
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == process:
                found += processes_below(int(name))
    return found


class ShellSession(Session):
    """A shell with the driver. `shell` is how it is called, such as ["bash"]."""

    def __init__(self, shell, environment=None, cwd=None, idle_limit=0):
        host, child = socket.socketpair()
        limits = {}
        if idle_limit:
            limits["DOCKBRIDGE_IDLE_LIMIT_MS"] = str(int(idle_limit * 1000))
            seconds = int(idle_limit)
            limit = struct.pack("ll", seconds, int((idle_limit - seconds) * 1000000))
            child.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        number = child.fileno()
        name = os.path.basename(shell[0]) if shell[0] == "bash" else "sh"
        self.process = subprocess.Popen([*shell, "-c", k_start, name, os.path.abspath(k_sources)], bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        close_fds=False, preexec_fn=lambda: os.dup2(number, 3),
                                        env={**os.environ, **limits, **(environment or {})}, cwd=cwd)
        child.close()
        self.channel = host
        self.received = b""
        self.texts = {"stdout": b"", "stderr": b""}
        self.cell = 0
        self.ready = self.event("ready")

    def request(self, code, cell, key, setup=""):
        code = code if isinstance(code, bytes) else code.encode()
        code = code if code.endswith(b"\n") else code + b"\n"
        setup = setup.encode() + (b"\n" if setup else b"")
        head = "run %d %s %d %d \"\\\"\"\n" % (cell, key, setup.count(b"\n"), code.count(b"\n"))
        return head.encode() + setup + code

    def start(self, code, setup=""):
        self.cell += 1
        self.channel.sendall(self.request(code, self.cell, "%032x" % self.cell, setup))
        begin = self.event("begin")
        assert begin == {"event": "begin", "cell": self.cell, "key": "%032x" % self.cell, "first": '"'}, begin

    def end(self):
        event = self.event("end")
        assert event["cell"] == self.cell, event
        self.read_outputs()
        for name in self.texts:
            event[name] = self.texts[name].decode("utf-8", "surrogateescape")
        return event

    def interrupt(self):
        for process in processes_below(self.process.pid):
            try:
                os.kill(process, signal.SIGINT)
            except ProcessLookupError:
                pass
