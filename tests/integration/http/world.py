"""A real rationd with a socket for HTTP, and a client that sees every byte."""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

RATIOND = os.environ["RATIOND"]
RATIONCTL = os.environ["RATIONCTL"]
PATIENCE = 60


def is_sanitized():
    """Then its memory is not its own."""
    with open(RATIOND, "rb") as file:
        text = file.read()
    return b"__tsan_init" in text or b"__asan_init" in text


def skip(why):
    """The whole test, unless it must not be left out."""
    print("skipped: " + why)
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


def has_ipv6_loopback():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def die_with_us():
    """A process that is started so does not outlive the test, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Daemon:
    def __init__(self, daemon="", more="", env=None):
        self.dir = tempfile.mkdtemp(prefix="rationd-http-")
        self.url = "unix:" + self.dir + "/s"
        self.config = self.dir + "/c"
        self.log_path = self.dir + "/log"
        self.configure(daemon, more)
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [RATIOND, "--config", self.config, "--ephemeral"], stderr=self.log_file, stdout=subprocess.DEVNULL,
            preexec_fn=die_with_us, env={**os.environ, **(env or {})})
        self.await_log("serving with")
        self.port = int(re.search(r"listening on http:127\.0\.0\.1:(\d+)", self.log()).group(1))

    def configure(self, daemon="", more=""):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("[daemon]\nlisten = %s\nlisten = http:127.0.0.1:0\n%s\n%s" %
                       (self.url, daemon, more))

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def await_log(self, text):
        wait(lambda: text in self.log() or self.process.poll() is not None)
        assert text in self.log(), self.log()

    def ctl(self, *args, given=None, status=0):
        done = subprocess.run([RATIONCTL, "--socket", self.url, *args], input=given, capture_output=True,
                              text=True, check=False)
        assert done.returncode == status, done
        return done.stdout

    def add(self, counts):
        """{path: n}; everything is folded when this returns."""
        self.ctl("add", "-", given="".join("%s %d\n" % item for item in counts.items()))
        self.ctl("flush")

    def rss(self):
        with open("/proc/%d/statm" % self.process.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.log_file.close()
        log = self.log()
        shutil.rmtree(self.dir)
        assert status == 0, (status, log)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def raw(self, request):
        """All that is answered until the daemon closes."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)

    def get(self, path, method="GET", **headers):
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost", "Connection: close"]
        lines += ["%s: %s" % (name.replace("_", "-"), value) for name, value in headers.items()]
        return Reply(self.raw(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")))

    def metrics(self, **headers):
        reply = self.get("/metrics", **headers)
        assert reply.status == 200, reply.status
        return reply.body.decode()


class Reply:
    def __init__(self, text):
        head, _, body = text.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value
        self.rest = b""
        if self.headers.get("transfer-encoding") == "chunked":
            self.body, self.rest = unchunk(body)
        else:
            length = int(self.headers.get("content-length", len(body)))
            self.body, self.rest = body[:length], body[length:]


def unchunk(text):
    body = b""
    while True:
        size, _, text = text.partition(b"\r\n")
        size = int(size, 16)
        if size == 0:
            assert text[:2] == b"\r\n", text
            return body, text[2:]
        body += text[:size]
        assert text[size:size + 2] == b"\r\n"
        text = text[size + 2:]


def read_all(connection):
    text = b""
    while True:
        try:
            some = connection.recv(1 << 16)
        except ConnectionResetError:
            some = b""
        if not some:
            return text
        text += some


def wait(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        time.sleep(0.01)


class Case(unittest.TestCase):
    """One daemon for all tests of a class."""

    daemon_lines = ""
    more_lines = ""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(cls.daemon_lines, cls.more_lines)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
