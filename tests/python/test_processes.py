"""Forks, processes of multiprocessing, and how processes end."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import unittest
from concurrent.futures import ProcessPoolExecutor

from rationd import Client
from support import DaemonTest, wait_until

pooled = None


def count_in_pool(n):
    """In a worker of a pool: the client came with the fork."""
    pooled.incr("requests/pool", n)
    return os.getpid()


def count_in_process(url, n):
    """In a process that knows nothing of the parent's clients."""
    client = Client(url, send_interval=30)
    client.incr("requests/process", n)


class Forks(DaemonTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.daemon.url, send_interval=0.001)
        self.addCleanup(self.client.close)

    def fork(self, child):
        """Run child() in a fork; its exit status must be 0."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                child()
                status = 0
            finally:
                os._exit(status)
        return pid

    def join(self, pid):
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_each_counts_its_own(self):
        hits = self.client.counter("requests/a")
        hits.incr(1)

        def child():
            hits.incr(10)
            self.client.flush()
            self.client.close()

        pid = self.fork(child)
        hits.incr(100)
        self.client.flush()
        self.join(pid)
        self.assertEqual(self.total("requests/a"), 111)

    def test_in_the_middle_of_a_flush(self):
        """Other threads count and flush all the while."""
        hits = self.client.counter("requests/a")
        added = [0] * 3
        stop = threading.Event()

        def work(me):
            while not stop.is_set():
                for _ in range(100):
                    hits.incr()
                added[me] += 100
                self.client.flush()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()

        def child():
            for _ in range(50):
                hits.incr()
            self.client.flush()
            assert self.client.get("requests/a").total >= 50
            assert self.client.close() == 0

        for _ in range(40):
            self.join(self.fork(child))
        stop.set()
        for thread in threads:
            thread.join()
        self.client.flush()
        self.assertEqual(self.total("requests/a"), sum(added) + 40 * 50)

    def test_a_child_holds_nothing(self):
        self.client.metric_set("jobs", "gauge")
        with self.client.hold("jobs/a", 5), self.client.lease("jobs/b", 10) as lease:
            lease.wait()

            def child():
                assert lease.left == 0
                assert not lease.try_()
                lease.wait()
                assert lease.try_()
                lease.close()
                self.client.close()

            self.join(self.fork(child))
            self.assertEqual(lease.left, 10)
            self.assertEqual(self.total("jobs/a"), 5)
        self.assertEqual(self.total("jobs"), 0)

    def test_leases_of_a_child_are_apart(self):
        """That which came with the fork, and that which the child has made."""
        self.client.metric_set("requests")
        with self.client.lease("requests/a", 10) as lease:
            lease.wait()

            def child():
                other = self.client.lease("requests/b", 20)
                other.wait()
                lease.wait()
                assert (lease.left, other.left) == (10, 20)
                self.client.close()

            self.join(self.fork(child))

    def test_prefork(self):
        """Workers that are forked from a parent with a client, serve for a while, and end as programs do."""
        program = """
import os, sys, rationd
client = rationd.Client()
client.incr("requests/parent")
hits = client.counter("requests/worker")
pids = []
for i in range(4):
    pid = os.fork()
    if pid == 0:
        for j in range(1000):
            hits.incr()
        sys.exit(0)
    pids.append(pid)
sys.exit(sum(os.waitpid(pid, 0)[1] for pid in pids))
"""
        self.run_program(program)
        self.assertEqual((self.total("requests/worker"), self.total("requests/parent")), (4000, 1))

    def test_pool_of_processes(self):
        global pooled
        pooled = self.client
        with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("fork")) as pool:
            list(pool.map(count_in_pool, range(1, 101)))
        self.assertEqual(self.total("requests/pool"), 5050)

    def test_multiprocessing(self):
        """However its processes are started; they end by os._exit, with all of it still to be sent."""
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            process = context.Process(target=count_in_process, args=(self.daemon.url, 7))
            process.start()
            process.join()
            self.assertEqual(process.exitcode, 0)
        self.assertEqual(self.total("requests/process"), 21)

    def test_fork_in_multiprocessing_with_the_parents_client(self):
        context = multiprocessing.get_context("fork")
        slow = Client(self.daemon.url, send_interval=30)
        slow.incr("requests/parent")
        process = context.Process(target=slow.incr, args=("requests/child", 5))
        process.start()
        process.join()
        slow.close()
        self.assertEqual((self.total("requests/parent"), self.total("requests/child")), (1, 5))


class Ends(DaemonTest):
    def test_exit_delivers(self):
        self.run_program("import rationd; rationd.Client(send_interval=30).incr('requests/a', 5)")
        self.assertEqual(self.total("requests/a"), 5)

    def test_exit_by_an_exception_and_by_sys_exit(self):
        self.run_program(
            "import rationd; rationd.Client(send_interval=30).incr('requests/a', 5); 1 / 0", status=1
        )
        self.run_program(
            "import rationd, sys; rationd.Client(send_interval=30).incr('requests/a', 5); sys.exit(3)",
            status=3,
        )
        self.assertEqual(self.total("requests/a"), 10)

    def test_exit_without_a_daemon_says_what_is_lost(self):
        began = time.monotonic()
        _, logged = self.run_program(
            "import rationd; c = rationd.Client('unix:/nonexistent', exit_timeout=0.2); c.incr('requests/a', 5); c.incr('requests/b')"
        )
        self.assertIn("6 could not be delivered to unix:/nonexistent", logged)
        self.assertLess(time.monotonic() - began, 30)

    def test_exit_with_threads_that_go_on(self):
        program = """
import rationd, threading
client = rationd.Client(send_interval=30)
def work():
    while True:
        client.incr("requests/noise")
threading.Thread(target=work, daemon=True).start()
client.incr("requests/a", 5)
"""
        self.run_program(program)
        self.assertEqual(self.total("requests/a"), 5)

    def test_nothing_is_said_where_nothing_was_counted(self):
        _, logged = self.run_program(
            "import rationd; rationd.Client('unix:/nonexistent').counter('requests/a')"
        )
        self.assertEqual(logged, "")

    def test_keyboard_interrupt_in_a_wait(self):
        program = """
import rationd, sys
client = rationd.Client()
client.metric_set("jobs", "gauge")
client.quota_set("jobs", max=0)
client.quota_set("jobs", max=1)
client.charge("jobs/a")
print("ready", flush=True)
client.charge("jobs/b", wait=60)
"""
        import subprocess

        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "RATIOND_SOCKET": self.daemon.url},
        )
        with process:
            process.stdout.readline()
            with Client(self.daemon.url) as client:
                wait_until(lambda: client.get("jobs").total == 1)
            process.send_signal(signal.SIGINT)
            process.communicate()
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(self.total("jobs"), 0, "what it held went back at its end")


if __name__ == "__main__":
    unittest.main()
