#!@SYSTEM_PYTHON3@
"""The Python client: an incr beside a dictionary's increment, and a million of them, flushed, beside python3-statsd over UDP."""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, "@PROJECT_BINARY_DIR@/python")
sys.dont_write_bytecode = True

import rationd  # noqa: E402

RATIOND = os.environ.get("RATIOND", "@PROJECT_BINARY_DIR@/bin/rationd")
PATHS = 1000
INCREMENTS = 1_000_000
STEPS = 500_000
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


class Daemon:
    """The daemon, in a folder of its own."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.url = f"unix:{self.folder}/socket"
        self.process = subprocess.Popen(
            [RATIOND, "--ephemeral", "--listen", self.url], stderr=subprocess.DEVNULL
        )
        while not os.path.exists(self.url[5:]):
            if self.process.poll() is not None:
                raise SystemExit(f"bench: {RATIOND} does not start")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


def timed(work, *arguments):
    """Processor time of the whole process, its other threads included, for each of STEPS."""
    began = time.process_time()
    work(*arguments)
    return (time.process_time() - began) / STEPS * 1e9


def nothing():
    for _ in range(STEPS):
        pass


def add_to_dictionary(counts):
    for _ in range(STEPS):
        counts["requests/acme/web"] += 1


def add_one(counter):
    for _ in range(STEPS):
        counter.incr()


def add_some(counter):
    for _ in range(STEPS):
        counter.incr(5)


def verdict(ratio, bound):
    return f"bound {bound:g}{'' if ratio <= bound else '  MISSED'}"


def bench_incr(client):
    """ns of an increment, less that of an empty loop."""
    counts, counter = {"requests/acme/web": 0}, client.counter("requests/acme/web")
    rows = []
    for _ in range(ROUNDS):
        loop = timed(nothing)
        rows.append(
            [
                timed(add_to_dictionary, counts) - loop,
                timed(add_one, counter) - loop,
                timed(add_some, counter) - loop,
            ]
        )
    client.flush(60)
    total = client.get("requests/acme/web", consistency="exact").total
    if total != 6 * STEPS * ROUNDS:
        raise SystemExit(f"bench: {total} of {6 * STEPS * ROUNDS} were counted")
    for name, column in (("incr()", 1), ("incr(5)", 2)):
        ratio = statistics.median(row[column] / row[0] for row in rows)
        cost, plain = (statistics.median(row[at] for row in rows) for at in (column, 0))
        print(
            f"counter.{name:8} {cost:6.1f} ns, a dictionary's += {plain:5.1f} ns: {ratio:5.2f} times   {verdict(ratio, 3)}"
        )


def through_rationd(client, counters):
    began = time.perf_counter()
    for _ in range(INCREMENTS // PATHS):
        for counter in counters:
            counter.incr()
    client.flush(60)
    return time.perf_counter() - began


def through_statsd(statsd, names):
    began = time.perf_counter()
    for _ in range(INCREMENTS // PATHS):
        for name in names:
            statsd.incr(name)
    return time.perf_counter() - began


def bench_statsd(client):
    """A million increments over a thousand paths."""
    try:
        from statsd import StatsClient
    except ImportError:
        print("there is no python3-statsd to compare with")
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        statsd = StatsClient(*sink.getsockname())
        counters = [client.counter(f"hits/{i}") for i in range(PATHS)]
        names = [f"hits.{i}" for i in range(PATHS)]
        rows = [(through_rationd(client, counters), through_statsd(statsd, names)) for _ in range(ROUNDS)]
    totals = client.get_many([counter.path for counter in counters], consistency="exact")
    wrong = [value for value in totals if value.total != INCREMENTS // PATHS * ROUNDS]
    if wrong:
        raise SystemExit(f"bench: {len(wrong)} counters are wrong, such as {wrong[0]}")
    ratio = statistics.median(ours / theirs for ours, theirs in rows)
    ours, theirs = (statistics.median(row[at] for row in rows) for at in (0, 1))
    print(
        f"1 M increments, 1,000 paths, flushed {ours:5.2f} s, python3-statsd over UDP {theirs:5.2f} s: {ratio:5.3f} times   {verdict(ratio, 0.2)}"
    )


with Daemon() as daemon, rationd.Client(daemon.url) as client:
    bench_incr(client)
    bench_statsd(client)
