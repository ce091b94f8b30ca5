"""Counting, reading, charging, leasing against a real daemon; what is refused at the call."""

import contextlib
import math
import os
import pickle
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import rationd
from rationd import Client, Code, InvalidArgument, Kind, NotFound, RationError, Refused, Unreachable, Window
from support import DaemonTest, wait_until


class ClientTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.losses = []
        self.client = Client(self.daemon.url, send_interval=0.01, on_loss=self.losses.append)
        self.addCleanup(self.client.close)


class Counting(ClientTest):
    def test_adds_arrive(self):
        hits = self.client.counter("requests/acme/web")
        for _ in range(1000):
            hits.incr()
        hits.increment(5)
        self.client.incr("requests/acme/api", 7)
        self.client.flush()
        value = self.client.get("requests/acme/web", consistency="exact")
        self.assertEqual((value.total, value.own, value.leaf, value.kind), (1005, 1005, True, Kind.COUNTER))
        self.assertEqual(int(self.client.get("requests", consistency="exact")), 1012)
        self.assertIs(self.client.counter("requests/acme/web"), hits)

    def test_gauges_go_both_ways(self):
        self.client.metric_set("jobs", "gauge")
        running = self.client.gauge("jobs/acme")
        running.incr(10)
        running.decr(3)
        running.incr(-2)
        self.client.decr("jobs/acme")
        self.client.flush()
        self.assertEqual(self.client.get("jobs/acme", consistency="exact").total, 4)

    def test_what_is_not_counted_is_reported(self):
        self.client.decr("requests/a", 3)
        self.client.flush()
        (loss,) = self.losses
        self.assertEqual((loss.code, loss.path, loss.amount), (Code.INVALID_ARGUMENT, "requests/a", -3))

    def test_sums_beyond_64_bits_are_split(self):
        big = self.client.counter("requests/big")
        big.incr((1 << 63) - 1)
        big.incr((1 << 63) - 1)
        self.client.flush()
        self.assertEqual(self.client.get("requests/big", consistency="exact").total, (1 << 63) - 1)
        self.assertEqual(sum(loss.amount for loss in self.losses), (1 << 63) - 1)

    def test_threads_lose_nothing(self):
        counters = [self.client.counter(f"requests/{i}") for i in range(10)]

        def work(_):
            for i in range(20000):
                counters[i % 10].incr()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        self.client.flush()
        self.assertEqual(self.client.get("requests", consistency="exact").total, 160000)
        self.assertEqual(
            [value.total for value in self.client.get_many((c.path for c in counters), consistency="exact")],
            [16000] * 10,
        )

    def test_an_exception_in_the_midst_of_an_addition_stops_nothing_later(self):
        """As of a signal's handler."""
        counter = self.client.counter("requests/a")
        with mock.patch.object(self.client._core, "note_dirty", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                counter.incr(5)
        counter.incr(2)
        self.client.flush()
        self.assertEqual(self.total("requests/a"), 7)

    def test_an_exception_in_the_midst_of_the_threads_start(self):
        start = threading.Thread.start

        def interrupted(thread):
            start(thread)
            raise KeyboardInterrupt

        with Client(self.daemon.url) as client:
            with mock.patch("threading.Thread.start", interrupted), self.assertRaises(KeyboardInterrupt):
                client.incr("requests/a", 5)
            client.incr("requests/a", 2)
            client.flush()
            self.assertEqual(self.total("requests/a"), 7)
            names = [thread.name for thread in threading.enumerate()]
            self.assertLessEqual(names.count("rationd"), 1 + (self.client._core.thread is not None))

    def test_a_long_interval_takes_no_memory_for_each_addition(self):
        with Client(self.daemon.url, send_interval=60) as client:
            counter = client.counter("requests/a")
            for _ in range(3):
                for _ in range(1000):
                    counter.incr()
                wait_until(lambda: not counter._pending, "they are one sum")
            self.assertEqual(self.total("requests/a"), 0)
            client.flush()
            self.assertEqual(self.total("requests/a"), 3000)

    def test_additions_after_the_end_are_said_once(self):
        client = Client(self.daemon.url)
        counter = client.counter("requests/a")
        counter.incr()
        client.close()
        with self.assertLogs("rationd", "WARNING") as logged:
            for _ in range(100):
                counter.incr()
        self.assertEqual(len(logged.records), 1)
        self.assertEqual(self.total("requests/a"), 1)

    def test_clients_that_end_leave_no_descriptors(self):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with Client(self.daemon.url) as client:
                client.incr("requests/a")
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_loss_may_count(self):
        def lost(_loss):
            client.incr("requests/losses")

        with Client(self.daemon.url, send_interval=0.01, on_loss=lost) as client:
            client.decr("requests/a")
            client.flush()
        self.assertEqual(self.total("requests/losses"), 1)

    def test_many_counters(self):
        for i in range(20000):
            self.client.incr(f"requests/{i % 100}/{i}", i)
        self.client.flush()
        self.assertEqual(self.client.get("requests", consistency="exact").total, sum(range(20000)))

    def test_max_counters(self):
        with Client(self.daemon.url, max_counters=1) as client:
            client.incr("requests/a")
            with self.assertRaises(RationError) as caught:
                client.incr("requests/b")
            self.assertEqual(
                (caught.exception.code, caught.exception.item), (Code.RESOURCE_EXHAUSTED, "requests/b")
            )


class Reading(ClientTest):
    def test_walk(self):
        for i in range(4500):
            self.client.incr(f"requests/{i % 3}/{i}")
        self.client.flush()
        seen = [value.path for value in self.client.walk("requests", consistency="exact")]
        self.assertEqual(len(seen), 4504)
        self.assertEqual(len(set(seen)), 4504)
        self.assertEqual(seen[0], "requests")
        self.assertEqual(len(list(self.client.walk("requests", depth=1))), 4)
        with self.assertRaises(NotFound) as caught:
            list(self.client.walk("none"))
        self.assertEqual(caught.exception.item, "none")

    def test_get(self):
        self.client.incr("requests/a")
        self.client.flush()
        with self.assertRaises(NotFound) as caught:
            self.client.get("requests/none")
        self.assertEqual((caught.exception.code, caught.exception.item), (Code.NOT_FOUND, "requests/none"))
        found = self.client.get_many(["requests/a", "requests/none"], consistency="cached")
        self.assertIsNone(found[1])
        self.assertEqual(self.client.get_many([]), [])

    def test_get_more_than_a_frame_holds(self):
        self.client.incr("requests/a", 5)
        self.client.flush()
        paths = [f"requests/{'x' * 128}/{'y' * 128}/{i}" for i in range(4500)]
        self.assertEqual(
            self.client.get_many([*paths, "requests/a"])[4499:], [None, self.client.get("requests/a")]
        )
        self.assertEqual(self.client.get_many([]), [])

    def test_the_daemon(self):
        self.client.ping()
        self.client.fold()
        self.assertIn("version", " ".join(self.client.status()))
        metric = self.client.metric_set("jobs", Kind.GAUGE, max_counters=5, overflow=True)
        self.assertEqual(metric, self.client.metric_get("jobs"))
        self.assertEqual((metric.kind, metric.max_counters, metric.overflow), (Kind.GAUGE, 5, True))
        with self.assertRaises(NotFound):
            self.client.metric_get("none")


class Quotas(ClientTest):
    def setUp(self):
        super().setUp()
        self.client.metric_set("jobs", "gauge")
        self.client.quota_set("jobs/acme", max=3)

    def test_charges(self):
        self.assertTrue(self.client.charge("jobs/acme", 2))
        self.assertTrue(self.client.charge({"jobs/acme": 1, "jobs/other": 5}))
        with self.assertRaises(Refused) as caught:
            self.client.charge([("jobs/acme", 1)])
        refused = caught.exception
        self.assertEqual((refused.code, refused.item), (Code.RESOURCE_EXHAUSTED, "jobs/acme"))
        self.assertEqual(
            (refused.bindings[0].limit, refused.bindings[0].usage, refused.retry_after_ms), (3, 3, 0)
        )
        self.assertFalse(self.client.charge("jobs/acme", dry_run=True))
        self.client.uncharge("jobs/acme", 3)
        self.assertTrue(self.client.charge("jobs/acme", dry_run=True))
        with self.assertRaises(RationError) as caught:
            self.client.uncharge("jobs/acme")
        self.assertEqual(caught.exception.code, Code.FAILED_PRECONDITION)
        with self.assertRaises(NotFound):
            self.client.charge("jops/acme")

    def test_hold(self):
        with self.client.hold("jobs/acme", 3):
            with self.assertRaises(Refused):
                with self.client.hold("jobs/acme"):
                    self.fail("there is no room")
        with self.assertRaises(KeyError):
            with self.client.hold({"jobs/acme": 1, "jobs/other": 2}):
                raise KeyError
        self.assertEqual(self.total("jobs"), 0)

    def test_a_hold_that_was_lost_takes_nothing_from_the_next_one(self):
        lost = contextlib.ExitStack()
        lost.enter_context(self.client.hold("jobs/acme"))
        self.daemon.kill()
        self.daemon.start()  # without a file: what was held is gone
        self.client.metric_set("jobs", "gauge", timeout=None)
        with self.client.hold("jobs/acme"), self.assertNoLogs("rationd"):
            lost.close()
            self.assertEqual(self.total("jobs/acme"), 1)
        self.assertEqual(self.total("jobs/acme"), 0)

    def test_hold_ends_with_the_client(self):
        with Client(self.daemon.url) as other:
            other.charge("jobs/acme", 3)
        self.assertTrue(self.client.charge("jobs/acme", 3))

    def test_wait_for_room(self):
        self.client.charge("jobs/acme", 3)
        done = threading.Event()

        def wait():
            self.client.charge("jobs/acme", 2, wait=60)
            done.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        self.assertFalse(done.wait(0.1))
        self.client.uncharge("jobs/acme", 2)
        waiting.join()
        self.assertTrue(done.is_set())

    def test_a_charge_that_nobody_waits_for_is_undone(self):
        self.client.ping()
        with self.daemon.stuck(), self.assertRaises(rationd.TimedOut):
            self.client.charge("jobs/acme", 2, timeout=0.05)
        wait_until(
            lambda: self.client.charge("jobs/acme", 3, dry_run=True), "what was granted late is given back"
        )

    def test_the_end_of_a_hold_of_many_does_not_wait_for_each(self):
        paths = {f"jobs/{i}": 1 for i in range(200)}
        begun = 0.0
        with mock.patch("rationd.client.HOLD_TIME", 0.5):
            with contextlib.ExitStack() as stack:
                with self.client.hold(paths):
                    stack.enter_context(self.daemon.stuck())
                    begun = time.monotonic()
                self.assertLess(time.monotonic() - begun, 0.5 * len(paths) / 2)
        wait_until(lambda: self.total("jobs") == 0)

    def test_a_charge_that_is_granted_at_the_last_moment_is_granted(self):
        class Late(rationd._charging.Future):
            def result(self, timeout=None):
                super().result()
                if timeout is not None:
                    raise TimeoutError
                return super().result()

        with mock.patch("rationd._charging.Future", Late):
            self.assertTrue(self.client.charge("jobs/acme", 3).granted)
        self.client.uncharge("jobs/acme", 3)

    def test_a_charge_that_is_granted_when_somebody_interrupts_is_undone(self):
        class Interrupted(rationd._charging.Future):
            def result(self, timeout=None):
                super().result()
                raise KeyboardInterrupt

        with mock.patch("rationd._charging.Future", Interrupted), self.assertRaises(KeyboardInterrupt):
            self.client.charge("jobs/acme", 3)
        wait_until(lambda: self.client.charge("jobs/acme", 3, dry_run=True))

    def test_detached(self):
        with Client(self.daemon.url) as other:
            other.charge("jobs/acme", 3, detached=True)
        self.assertFalse(self.client.charge("jobs/acme", dry_run=True))
        self.client.uncharge("jobs/acme", 3, detached=True)
        self.assertTrue(self.client.charge("jobs/acme", dry_run=True))

    def test_lease(self):
        with self.client.lease("jobs/other", 100) as lease:
            lease.wait()
            self.assertEqual(lease.left, 100)
            spent = 0
            while spent < 250:
                spent += lease.try_()
            self.assertEqual(lease.spent, 250)
            lease.give(50)
        self.client.flush()
        self.assertEqual(self.client.get("jobs/other", consistency="exact").total, 200)
        self.assertFalse(lease.try_())

    def test_a_lease_never_spends_more_than_there_is(self):
        self.client.quota_set("jobs/tight", max=100)
        lease = self.client.lease("jobs/tight", 40, ttl=5)
        lease.wait()
        spent = []

        def spend():
            for _ in range(3000):
                if lease.try_():
                    spent.append(1)

        with ThreadPoolExecutor(4) as pool:
            for _ in range(4):
                pool.submit(spend)
        self.assertLessEqual(len(spent), 100)
        lease.close()
        self.assertEqual(self.client.get("jobs/tight", consistency="exact").total, len(spent))

    def test_a_lease_that_is_refused(self):
        self.client.quota_set("jobs/none", max=0)
        with self.client.lease("jobs/none", 10) as lease:
            with self.assertRaises(Refused):
                lease.wait()
            self.assertFalse(lease.try_())

    def test_rules(self):
        self.client.quota_set("requests/*", max=1000, high=900, window=Window.per(60))
        self.client.quota_set("requests/slow", rate=10, per_ms=1000, burst=5)
        rules = {(rule.pattern, str(rule.limits.window)): rule for rule in self.client.quota_list()}
        self.assertEqual(rules["requests/*", "per 60000 ms"].limits.max, 1000)
        self.assertEqual(rules["requests/slow", "rate"].limits.burst, 5)
        self.client.charge("requests/slow", 3)
        levels = self.client.quota_explain("requests/slow").levels
        self.assertEqual({level.limits.window.kind.name for level in levels}, {"RATE", "PER"})
        self.client.quota_remove("requests/*")
        with self.assertRaises(NotFound):
            self.client.quota_remove("requests/*", Window.per(60))
        with self.assertRaises(InvalidArgument):
            self.client.quota_set("requests/a", max=5, low=9, window=Window.calendar("day"))


class BadInput(unittest.TestCase):
    """Refused at the call; there is no daemon, and nothing is sent."""

    def setUp(self):
        self.client = Client("unix:/nonexistent/socket", timeout=0.2, exit_timeout=0)
        self.addCleanup(self.client.close, 0)

    def test_paths(self):
        bad = [
            "",
            "/",
            "a//b",
            "/a",
            "a/",
            "a/./b",
            "a/../b",
            "a/*",
            "a/**",
            "a\nb",
            "a/ b",
            "a/b ",
            "a/\u3000b",
            "a\x85",
        ]
        bad += ["x" * 129, "/".join("a" * 17), "a/" + "b" * 520, "é" * 65, "\ud800"]
        for path in bad:
            with self.subTest(path=path), self.assertRaises(InvalidArgument) as caught:
                self.client.counter(path)
            self.assertEqual((caught.exception.code, caught.exception.item), (Code.INVALID_ARGUMENT, path))
            self.assertTrue(caught.exception.text)
        for path in ["a", "a/b c/d", "ä/ö", "x" * 128, "/".join("a" * 16)]:
            self.client.counter(path)
        for path in (b"a", None, 5):
            with self.assertRaises(TypeError):
                self.client.counter(path)

    def test_amounts(self):
        counter, gauge = self.client.counter("a"), self.client.gauge("g")
        for bad in (1.0, "1", None, True, math.inf, [1]):
            for add in (counter.incr, gauge.incr, gauge.decr):
                with self.subTest(bad=bad), self.assertRaises(TypeError):
                    add(bad)
        for bad in (-1, 1 << 63):
            with self.assertRaises(ValueError):
                counter.incr(bad)
        for bad in (1 << 63, -(1 << 63) - 1):
            with self.assertRaises(InvalidArgument):
                gauge.incr(bad)
        for bad in (0, -1, (1 << 62) + 1):
            with self.assertRaises(InvalidArgument):
                self.client.charge("jobs/a", bad)
            with self.assertRaises(InvalidArgument):
                self.client.uncharge("jobs/a", bad)
        with self.assertRaises(InvalidArgument):
            self.client.charge([])
        with self.assertRaises(InvalidArgument):
            self.client.charge([("a", 1)] * 10001)
        with self.assertRaises(InvalidArgument):
            self.client.lease("jobs/a", 0)
        with self.assertRaises(InvalidArgument):
            self.client.lease("jobs/a", 1, ttl=61)
        self.assertIsNone(self.client._core.thread, "nothing was to be sent")

    def test_times(self):
        """Looked at before anything is sent: else a charge would be made for a call that fails."""
        calls = (
            lambda t: self.client.flush(t),
            lambda t: self.client.get("a", timeout=t),
            lambda t: self.client.charge("jobs/a", timeout=t),
            lambda t: self.client.charge("jobs/a", wait=t),
            lambda t: self.client.uncharge("jobs/a", timeout=t),
            lambda t: self.client.close(t),
        )
        for call in calls:
            for bad in ("1", True, [1]):
                with self.subTest(bad=bad), self.assertRaises(TypeError):
                    call(bad)
            for bad in (-0.5, math.nan):
                with self.subTest(bad=bad), self.assertRaises(InvalidArgument):
                    call(bad)
        self.assertIsNone(self.client._core.thread, "nothing was to be sent")
        for long in (math.inf, 1e300):
            with self.assertRaises(Unreachable):
                self.client.get("a", timeout=long)
            with self.assertRaises(Unreachable):
                self.client.charge("jobs/a", wait=long)

    def test_everything_else(self):
        for call in (
            lambda: self.client.get("a", consistency="bogus"),
            lambda: self.client.metric_set("a", "bogus"),
            lambda: Window.calendar("year"),
        ):
            with self.assertRaises(InvalidArgument):
                call()
        for call in (
            lambda: self.client.get("a", consistency=3),
            lambda: self.client.get_many("abc"),
            lambda: self.client.metric_set("a", 1),
            lambda: self.client.quota_set("a", max=1, window="day"),
            lambda: self.client.quota_remove("a", "day"),
            lambda: self.client.charge(None),
            lambda: self.client.charge(["jobs/a"]),
            lambda: Client("unix:/x", on_loss=5),
        ):
            with self.assertRaises(TypeError):
                call()
        self.assertIsNone(self.client._core.thread, "nothing was to be sent")

    def test_what_is_said_can_be_printed(self):
        for bad in ("\ud800", "a\n", "\x1b[2J"):
            with self.assertRaises(InvalidArgument) as caught:
                self.client.counter(bad)
            self.assertTrue(str(caught.exception).isprintable())

    def test_requests_that_no_frame_holds(self):
        """Sent, the daemon would end the connection, each time anew, and what is counted would suffer."""
        path = "/".join(["x" * 120] * 4)
        items = [(f"{path}/{i}", 1) for i in range(2200)]
        for call in (
            lambda: self.client.charge(items),
            lambda: self.client.charge(items, dry_run=True),
            lambda: self.client.quota_set("x" * (1 << 20), max=1),
        ):
            with self.assertRaises(InvalidArgument):
                call()

    def test_addresses(self):
        for bad in (
            "",
            "unix:",
            "tcp:host",
            "tcp:host:0",
            "tcp:host:65536",
            "tcp::1",
            "tcp:::1:5",
            "http:x",
            "/run/x",
            "unix:" + "x" * 108,
        ):
            with self.subTest(url=bad), self.assertRaises(InvalidArgument):
                Client(bad)
        for bad in (
            dict(session_lifetime=-1),
            dict(send_interval=0),
            dict(max_unacknowledged=1),
            dict(max_counters=0),
            dict(timeout=-1),
            dict(exit_timeout=-1),
            dict(exit_timeout=float("nan")),
        ):
            with self.subTest(options=bad), self.assertRaises(ValueError):
                Client("unix:/x", **bad)

    def test_nobody_listens(self):
        with self.assertRaises(Unreachable) as caught:
            self.client.get("requests")
        self.assertEqual(caught.exception.code, Code.UNAVAILABLE)
        with self.assertRaises(ConnectionError):
            self.client.charge("jobs/a")
        self.client.incr("requests/a", 5)
        with self.assertRaises(Unreachable):
            self.client.flush()
        with self.assertLogs("rationd", "WARNING") as logged:
            self.assertEqual(self.client.close(0.1), 5)
        self.assertIn("5 could not be delivered", logged.output[0])
        with self.assertRaises(rationd.ClientClosed):
            self.client.ping()
        with self.assertLogs("rationd", "WARNING"):
            self.client.incr("requests/a", 5)

    def test_errors_can_be_pickled(self):
        for error in (
            InvalidArgument("t", "i"),
            NotFound("t", "i"),
            Refused(()),
            Unreachable("t"),
            RationError(Code.INTERNAL, "t", "i"),
        ):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual(
                (type(again), str(again), again.code, again.item),
                (type(error), str(error), error.code, error.item),
            )


if __name__ == "__main__":
    unittest.main()
