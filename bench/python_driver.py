"""Measures the driver of Python sessions: start, one-off cells, the round trip of a cell, and memory.

    python3 bench/python_driver.py [ROUNDS]
"""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/drivers"))
import driver_session

k_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
k_round_trips = 2000


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def run_bare(code):
    """Starts an interpreter in the way in which the tests start the driver, and waits until it has ended."""
    process = subprocess.Popen([driver_session.k_interpreter, "-c", code], stdin=subprocess.PIPE, bufsize=0,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), close_fds=False,
                               preexec_fn=lambda: None)
    process.communicate()
    assert process.returncode == 0


def environment():
    return {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}


def time_until_ready():
    start = time.perf_counter()
    with driver_session.Session():
        return time.perf_counter() - start


def time_one_off():
    start = time.perf_counter()
    with driver_session.Session() as session:
        session.start("print(1)", last=True)
        end = session.event("end")
        elapsed = time.perf_counter() - start
        assert end["status"] == "ok", end
        session.wait_for_exit()
    return elapsed


def time_until_exit():
    start = time.perf_counter()
    with driver_session.Session() as session:
        session.start("print(1)", last=True)
        session.event("end")
        session.wait_for_exit()
        return time.perf_counter() - start


def private_kib(process):
    with open("/proc/%d/smaps_rollup" % process) as file:
        lines = {line.split(":")[0]: line.split() for line in file}
    return int(lines["Private_Clean"][1]) + int(lines["Private_Dirty"][1]), int(lines["Rss"][1])


def measure_bare_memory():
    process = subprocess.Popen([driver_session.k_interpreter, "-c", "print(flush=True); import sys; sys.stdin.read()"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    process.stdout.readline()
    result = private_kib(process.pid)
    process.communicate()
    return result


def main():
    with driver_session.Session():
        pass  # installs the driver
    kinds = {
        "python3 -c pass": lambda: seconds(lambda: run_bare("pass")),
        "driver until ready": time_until_ready,
        "python3 -c 'print(1)'": lambda: seconds(lambda: run_bare("print(1)")),
        "driver until end of print(1)": time_one_off,
        "driver until exit after print(1)": time_until_exit,
    }
    samples = {name: [] for name in kinds}
    for _ in range(k_rounds):  # taken in turn, so that other load affects all alike
        for name in kinds:
            samples[name].append(kinds[name]())
    bare = statistics.median(samples["python3 -c pass"])
    for name in kinds:
        median = statistics.median(samples[name])
        print("%-34s %7.2f ms  %.2fx of pass" % (name, median * 1e3, median / bare))

    with driver_session.Session() as session:
        private, resident = private_kib(session.process.pid)
        for _ in range(100):
            session.value("1+1")
        trips = []
        line = '{"op": "run", "cell": 1000, "code": "1+1"}\n'.encode()
        for _ in range(k_round_trips):
            start = time.perf_counter()
            session.channel.sendall(line)
            data = b""
            while b'"end"' not in data or not data.endswith(b"\n"):
                data += session.channel.recv(65536)
            trips.append(time.perf_counter() - start)
        print("%-34s %7.3f ms" % ("round trip of 1+1", statistics.median(trips) * 1e3))
        private_after, resident_after = private_kib(session.process.pid)
    bare_private, bare_resident = measure_bare_memory()
    print("memory over the bare interpreter: %.1f MiB private, %.1f MiB resident; after 2100 cells %.1f MiB private" %
          ((private - bare_private) / 1024, (resident - bare_resident) / 1024,
           (private_after - bare_private) / 1024))


main()
