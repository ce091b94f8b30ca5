"""The StatsD shape."""

import unittest

from rationd import Client
from rationd.statsd import StatsClient
from support import DaemonTest


class Statsd(DaemonTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.daemon.url)
        self.addCleanup(self.client.close)

    def test_counts(self):
        self.client.metric_set("jobs", "gauge")
        statsd = StatsClient("localhost", 8125, prefix="web", client=self.client)
        statsd.incr("acme.hits")
        statsd.incr("acme.hits", 5)
        statsd.incr("acme.hits", count=2, rate=1)
        other = StatsClient(url=self.daemon.url)
        other.incr("jobs.acme", 5)
        other.decr("jobs.acme", 2)
        other.gauge("jobs.acme", 4, delta=True)
        with other.pipeline() as pipe:
            pipe.incr("web.pipe")
            pipe.incr("web.pipe", 3)
        other.close()
        self.client.flush()
        self.assertEqual(self.total("web/acme/hits"), 8)
        self.assertEqual(self.total("jobs/acme"), 7)
        self.assertEqual(self.total("web/pipe"), 4)

    def test_rates_change_nothing(self):
        statsd = StatsClient(client=self.client)
        for _ in range(300):
            statsd.incr("web.sampled", 1, rate=0.3)
        statsd.incr("web.sampled", 700, 0.001)
        self.client.flush()
        self.assertEqual(self.total("web/sampled"), 1000)

    def test_what_is_not_kept(self):
        statsd = StatsClient(client=self.client)
        for call in (
            lambda: statsd.timing("a", 5),
            lambda: statsd.timer("a"),
            lambda: statsd.set("a", 1),
            lambda: statsd.gauge("a", 5),
        ):
            with self.assertRaises(NotImplementedError):
                call()
        with self.assertRaises(ValueError):
            statsd.incr("a..b")
        with self.assertRaises(TypeError):
            statsd.incr("a", 0.5)
        statsd = StatsClient(client=self.client, ignore_others=True)
        statsd.timing("a", 5)
        with statsd.timer("a"):
            pass

        @statsd.timer("a")
        def function():
            return 5

        self.assertEqual(function(), 5)


if __name__ == "__main__":
    unittest.main()
