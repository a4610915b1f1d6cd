"""Speaks the protocol of docs/agent-protocol.md with an agent, and reads the pieces of side channels."""
import json
import os
import random
import select
import struct
import subprocess
import time

k_magic = b"dockbridge-agent/1\n"
k_deadline = 30


class AgentError(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]
        self.message = error["message"]
        self.next_step = error["nextStep"]


class Agent:
    """A session of the agent. Every wait ends with an AssertionError after a deadline."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.received = b""
        self.requests = 0
        self.replies = {}
        assert self.take(len(k_magic)) == k_magic
        self.hello = self.frame()[0]["hello"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def take(self, size):
        limit = time.monotonic() + k_deadline
        while len(self.received) < size:
            assert select.select([self.process.stdout], [], [], max(0, limit - time.monotonic()))[0], "deadline"
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            assert piece, "the agent has closed its stream: %r" % self.received
            self.received += piece
        taken, self.received = self.received[:size], self.received[size:]
        return taken

    def frame(self):
        head, body = struct.unpack("<II", self.take(8))
        return json.loads(self.take(head).decode()), self.take(body)

    def send(self, operation, body=b"", **fields):
        """Sends a request and returns its number."""
        self.requests += 1
        head = json.dumps({"id": self.requests, "op": operation, **fields}).encode()
        self.process.stdin.write(struct.pack("<II", len(head), len(body)) + head + body)
        return self.requests

    def reply(self, request):
        while request not in self.replies:
            head, body = self.frame()
            self.replies[head["id"]] = (head, body)
        head, body = self.replies.pop(request)
        if "error" in head:
            raise AgentError(head["error"])
        return head, body

    def call(self, operation, body=b"", **fields):
        return self.reply(self.send(operation, body, **fields))

    def begin(self, command="", environment=None, owner="local", until=None, timeout=20000, stdin=None, process=None,
              cwd="/", **fields):
        """Sends a start. Returns the process id and the number of the request."""
        process = process or "proc_%d_%s" % (time.time() * 1000, "%012x" % random.getrandbits(48))
        block = b"".join(b"%s=%s\0" % (name.encode(), value.encode()) for name, value in (environment or {}).items())
        text = command.encode()
        request = self.send("start", text + block + (stdin or b""), process=process, cwd=cwd, owner=owner,
                            rationale="test", commandBytes=len(text), environmentBytes=len(block),
                            stdin="pipe" if stdin is None else "body", maxRuntimeMs=0, timeoutMs=timeout, carry=0,
                            until=until or {}, **fields)
        return process, request

    def wait(self, process, until=None, timeout=20000):
        return self.call("wait", process=process, timeoutMs=timeout, carry=0, until=until or {})[0]

    def read(self, process, stream="out", offset=0):
        data = b""
        while True:
            head, body = self.call("read", process=process, stream=stream, offset=offset, max=262144)
            data += body
            offset = head["offset"] + len(body)
            if not body:
                return data

    def list(self, owner="local"):
        return json.loads(self.call("list", owner=owner, most=100)[1].decode())["processes"]


class CodeSession:
    """A code session in a container, and the events that it has sent."""

    def __init__(self, agent, kind="python", name="main", idle=0, ipython=True, warm=0, interpreter=None, **options):
        self.agent = agent
        session = {"kind": kind, "name": name, "idleLimitMs": idle, "ipython": ipython, "warm": warm}
        if interpreter:
            session["interpreter"] = interpreter
        self.id, request = agent.begin(kind + " " + name, session=session, until={"side": 0}, **options)
        self.state = agent.reply(request)[0]["process"]
        self.read_to = 0
        self.pieces = b""
        self.text = b""
        self.cell = 0

    def read(self):
        """Adds what is new on the side channel to `text`. Returns whether there was something."""
        head, body = self.agent.call("read", process=self.id, stream="side", offset=self.read_to, max=262144)
        self.read_to += len(body)
        self.pieces += body
        while len(self.pieces) >= 24:
            mark, size, _, _ = struct.unpack("<4sIQQ", self.pieces[:24])
            assert mark == b"side"
            if len(self.pieces) < 24 + size:
                break
            self.text += self.pieces[24:24 + size]
            self.pieces = self.pieces[24 + size:]
        return bool(body)

    def event(self, kind=None):
        """The next event; None if the process has ended without one."""
        while b"\n" not in self.text:
            if not self.read():
                answer = self.agent.wait(self.id, {"side": self.read_to})
                self.state = answer["process"]
                if answer["happened"] == "ended" and not self.read():
                    return None
                assert answer["happened"] in ("side", "ended"), answer
        line, _, self.text = self.text.partition(b"\n")
        event = json.loads(line.decode())
        assert kind is None or event["event"] == kind, event
        return event

    def send(self, **request):
        line = json.dumps(request).encode() + b"\n"
        head, _ = self.agent.call("side", line, process=self.id)
        assert head["accepted"] == len(line)

    def start(self, code, **fields):
        self.cell += 1
        self.send(op="run", cell=self.cell, key="%032x" % random.getrandbits(128), code=code, **fields)

    def run(self, code, **fields):
        """Runs a cell and returns its end."""
        self.start(code, **fields)
        self.event("begin")
        while True:
            event = self.event()
            if event is None or event["event"] == "end":
                return event

    def value(self, code, **fields):
        end = self.run(code, **fields)
        assert end["status"] == "ok", end
        return end.get("value", {}).get("text/plain")
