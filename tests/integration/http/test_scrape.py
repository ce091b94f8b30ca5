"""Pages of many series, for readers of all kinds."""

import os
import socket
import struct
import subprocess
import threading
import unittest

import pages
from world import RATIONCTL, Case, Daemon, Reply, die_with_us, is_sanitized, read_all, wait

N = 30000
ROOM = (64 if is_sanitized() else 4) << 20


class Scrapes(Case):
    daemon_lines = "http_timeout = 1h"  # no reader is slow enough to be dropped

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.add({"requests/tenant=%d/service=%d" % (i // 100, i % 100): i + 1 for i in range(N)})
        cls.request = b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"

    def check(self, text):
        series, counters = pages.check(text)
        mine = [value for key, value in series.items() if key.startswith("requests_total{")]
        self.assertEqual(len(mine), N)
        self.assertEqual(sum(mine), N * (N + 1) // 2)
        self.assertIn("rationd_counters", series)
        self.assertIn("rationd_flushes_run_total", counters)

    def test_whole(self):
        self.check(self.daemon.metrics())
        text = self.daemon.metrics(Accept="application/openmetrics-text")
        series, _ = pages.check(text)
        self.assertEqual(sum(key.startswith("requests_created{") for key in series), N)
        self.assertTrue(text.endswith("# EOF\n"))

    def slow(self):
        """A reader that asked, with a small window, and reads nothing."""
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", self.daemon.port))
        reader.sendall(self.request)
        return reader

    def test_slow_reader(self):
        """Nobody else waits for it, what it does not take is not kept, and it gets all of its page in the end."""
        self.check(self.daemon.metrics())
        before = self.daemon.rss()
        readers = [self.slow() for _ in range(8)]
        for _ in range(5):
            self.check(self.daemon.metrics())
        self.daemon.ctl("add", "other", "1")
        self.assertLess(self.daemon.rss() - before, ROOM)
        for reader in readers:
            self.check(Reply(read_all(reader)).body.decode())
            reader.close()

    def test_reader_that_sends(self):
        """What it sends meanwhile is not kept either."""
        self.check(self.daemon.metrics())
        before = self.daemon.rss()
        readers = [self.slow() for _ in range(8)]
        for reader in readers:
            reader.setblocking(False)
            try:
                for _ in range(1000):
                    reader.send(b"GET /metrics HTTP/1.1\r\n\r\n" * 4000)
            except BlockingIOError:
                pass
        self.check(self.daemon.metrics())
        self.assertLess(self.daemon.rss() - before, ROOM)
        for reader in readers:
            reader.close()
        self.check(self.daemon.metrics())

    def test_too_many(self):
        readers = []
        while len(readers) < 40:
            readers.append(self.slow())
            reply = self.daemon.get("/metrics")
            if reply.status == 503:
                break
        self.assertEqual((reply.status, len(readers)), (503, 32))
        self.assertIn(b'"error":', reply.body)
        self.assertEqual(self.daemon.get("/healthz").status, 200)
        for reader in readers:
            reader.close()
        wait(lambda: self.daemon.get("/metrics").status == 200)
        self.check(self.daemon.metrics())

    def test_reader_that_goes(self):
        """In the midst of its page, with a close or a reset, before or after some of it."""
        for i in range(100):
            with self.daemon.connect() as reader:
                reader.sendall(self.request)
                for _ in range(i % 4):
                    reader.recv(10000)
                if i % 2:
                    reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.check(self.daemon.metrics())
        series, _ = pages.check(self.daemon.metrics())
        self.assertGreater(series["rationd_http_aborted_total"], 50)

    def test_only_grows(self):
        """While it counts no counter steps back, and none is there twice."""
        adding = subprocess.Popen([RATIONCTL, "--socket", self.daemon.url, "add", "-"], stdin=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, preexec_fn=die_with_us)
        done = threading.Event()

        def add():
            i = 0
            while not done.is_set():
                lines = "".join("grow/%d/x=%d 1\n" % (i // 7 % 50, i % 50) for i in range(i, i + 1000))
                adding.stdin.write(lines.encode())
                i += 1000

        thread = threading.Thread(target=add)
        thread.start()
        before = pages.check(self.daemon.metrics())
        grown = 0
        while grown < 20:
            after = pages.check(self.daemon.metrics())
            pages.only_grows(before, after)
            grown += any(key.startswith("grow_total{") and value > before[0].get(key, 0)
                         for key, value in after[0].items())
            before = after
        done.set()
        thread.join()
        adding.stdin.close()
        adding.wait()


class NewOnes(unittest.TestCase):
    def test_other_order(self):
        """A page that is under way is not joined by counters with the labels of some that are on it."""
        daemon = Daemon("http_timeout = 1h")
        daemon.add({"o/a=1/z": 1})
        daemon.add({"o/b=%d/a=1" % i: 1 for i in range(N)})
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", daemon.port))
        reader.sendall(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")
        text = b""
        while b"\no_total{" not in text:
            text += reader.recv(4096)
        daemon.add({"o/a=1/b=%d" % i: 1 for i in range(N)})
        series, _ = pages.check(Reply(text + read_all(reader)).body.decode())
        self.assertEqual(sum(key.startswith("o_total{") for key in series), N + 1)
        reader.close()
        series, _ = pages.check(daemon.metrics())
        self.assertEqual(sum(key.startswith("o_total{") for key in series), 2 * N + 1)
        daemon.stop()


class Ends(unittest.TestCase):
    def start(self, lines):
        daemon = Daemon(lines)
        daemon.add({"requests/%d" % i: 1 for i in range(N)})
        return daemon

    def read_some(self, daemon):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", daemon.port))
        reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        return reader, reader.recv(1000)

    def test_too_slow(self):
        """A page that is not taken in time does not look whole."""
        daemon = self.start("http_timeout = 500ms")
        reader, text = self.read_some(daemon)
        wait(lambda: "rationd_http_aborted_total 1\n" in daemon.metrics())
        text += read_all(reader)
        self.assertFalse(text.endswith(b"0\r\n\r\n"))
        reader.close()
        daemon.stop()

    def test_stop(self):
        """A stop waits for the page that is under way."""
        daemon = self.start("stop_timeout = 1m")
        reader, text = self.read_some(daemon)
        daemon.process.terminate()
        daemon.await_log("stopping")
        text += read_all(reader)
        series, _ = pages.check(Reply(text).body.decode())
        self.assertEqual(sum(key.startswith("requests_total{") for key in series), N)
        reader.close()
        daemon.stop()

    def test_stop_in_time(self):
        """But not for ever."""
        daemon = self.start("stop_timeout = 200ms")
        reader, _ = self.read_some(daemon)
        daemon.stop()
        reader.close()


if __name__ == "__main__":
    unittest.main(verbosity=1)
