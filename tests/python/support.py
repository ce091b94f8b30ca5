"""What the tests share: a real daemon, a proxy that cuts connections, and waits that end by themselves."""

import contextlib
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PATIENCE = 60.0
PROGRAM = os.environ.get("RATIOND", "rationd")


def wait_until(done, what="what is waited for"):
    """Until done() says something, which is returned."""
    until = time.monotonic() + PATIENCE
    while not (result := done()):
        if time.monotonic() > until:
            raise AssertionError(f"{what} does not come about")
        time.sleep(0.005)
    return result


class Daemon:
    """A rationd on a unix socket in a folder of its own. keeps: with a state file."""

    def __init__(self, keeps=False, config="", listen=()):
        self.folder = tempfile.mkdtemp(prefix="ration-python-")
        self.socket = os.path.join(self.folder, "socket")
        self.url = f"unix:{self.socket}"
        self.config = os.path.join(self.folder, "rationd.conf")
        pathlib.Path(self.config).write_text(f"[daemon]\n{config}\n")
        state = ["--state", os.path.join(self.folder, "state.db")] if keeps else ["--ephemeral"]
        self.command = [PROGRAM, "--config", self.config, "--listen", self.url, *state]
        for url in listen:
            self.command += ["--listen", url]
        self.process = None
        self.start()

    def start(self):
        """Returns once it is READY."""
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            notify.bind(path)
            log = open(os.path.join(self.folder, "log"), "ab")
            with log:
                self.process = subprocess.Popen(
                    self.command, env={**os.environ, "NOTIFY_SOCKET": path}, stderr=log
                )
            until = time.monotonic() + PATIENCE
            while True:
                if not select.select([notify], [], [], 0.05)[0]:
                    if self.process.poll() is not None or time.monotonic() > until:
                        raise AssertionError("the daemon does not start: " + self.log())
                elif b"READY=1" in notify.recv(4096):
                    return

    def log(self):
        return pathlib.Path(self.folder, "log").read_text(errors="replace")

    def kill(self):
        """As abruptly as can be."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @contextlib.contextmanager
    def stuck(self):
        """It does not get a processor meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stop(self):
        """In good order; it must say so."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(PATIENCE)
            if status != 0:
                raise AssertionError(f"the daemon's exit status is {status}: {self.log()}")

    def clean(self):
        try:
            self.stop()
        finally:
            if self.process.poll() is None:
                self.kill()
            shutil.rmtree(self.folder)


class Proxy:
    """Stands between clients and a daemon, and cuts each connection after a random number of bytes."""

    def __init__(self, daemon, seed, low=200, high=6000):
        self.daemon = daemon
        self.random = random.Random(seed)
        self.low, self.high = low, high
        self.path = os.path.join(daemon.folder, "proxy")
        self.url = f"unix:{self.path}"
        self.n_cuts = 0
        self.cutting = True
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.stopping = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.stopping:
            if not select.select([self.listener], [], [], 0.1)[0]:
                continue
            front, _ = self.listener.accept()
            back = socket.socket(socket.AF_UNIX)
            with front, back:
                try:
                    back.connect(self.daemon.socket)
                    self.carry(front, back)
                except OSError:
                    pass

    def carry(self, front, back):
        """One connection at a time is enough for one client."""
        left = self.random.randint(self.low, self.high)
        while not self.stopping:
            for source in select.select([front, back], [], [], 0.1)[0]:
                data = source.recv(4096)
                if not data:
                    return
                if self.cutting:
                    data = data[:left]
                    left -= len(data)
                (back if source is front else front).sendall(data)
                if self.cutting and left <= 0:
                    self.n_cuts += 1
                    return

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.listener.close()


class DaemonTest(unittest.TestCase):
    """A test with a daemon for each of its methods: self.daemon."""

    keeps = False
    config = ""

    def setUp(self):
        self.daemon = Daemon(self.keeps, self.config)
        self.addCleanup(self.daemon.clean)

    def total(self, path):
        """What the daemon has, asked by a client of its own."""
        from rationd import Client, NotFound

        with Client(self.daemon.url) as client:
            try:
                return client.get(path, consistency="exact").total
            except NotFound:
                return 0

    def run_program(self, text, *arguments, status=0, **environment):
        """Run a program of Python with the package, and give what it has printed, and logged."""
        done = subprocess.run(
            [sys.executable, "-c", text, *arguments],
            env={**os.environ, "RATIOND_SOCKET": self.daemon.url, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr
