"""Nothing is lost and nothing counted twice: connections that are cut, a daemon that is killed, or away."""

import os
import random
import socket
import threading
import time
import unittest
from unittest import mock

from rationd import Client, RationError, TimedOut, Unreachable
from support import Daemon, DaemonTest, Proxy, wait_until

CUTS = int(os.environ.get("RATION_CUTS", "1000"))
KILLS = int(os.environ.get("RATION_KILLS", "300"))
SEED = int(os.environ.get("RATION_SEED", "0")) or random.randrange(1, 1 << 32)


class Away(DaemonTest):
    def test_counts_wait_for_the_daemon(self):
        self.daemon.stop()
        with Client(self.daemon.url) as client:
            for i in range(30000):
                client.incr(f"requests/{i % 100}")
            with self.assertRaises(RationError):
                client.flush(0.1)
            self.daemon.start()
            client.flush()
            self.assertEqual(client.get("requests", consistency="exact").total, 30000)

    def test_what_is_flushed_does_not_wait_for_what_is_new(self):
        self.daemon.stop()
        with Client(self.daemon.url, send_interval=60) as client:
            client.incr("requests/a", 3)
            flushing = threading.Thread(target=client.flush, args=(None,))
            flushing.start()
            wait_until(lambda: client._core.flushes)
            client.incr("requests/a", 4)
            wait_until(lambda: client._core.collect_at is None and not client.counter("requests/a")._pending)
            self.daemon.start()
            flushing.join(30)
            self.assertFalse(flushing.is_alive())
            self.assertEqual(self.total("requests/a"), 7)

    def test_memory_is_bounded(self):
        """Batches are cut up to max_unacknowledged; the rest is merged."""
        with Silent() as silent, Client(
            silent.url, max_unacknowledged=64 << 10, send_interval=0.001
        ) as client:
            for i in range(200):
                for j in range(1000):
                    client.incr(f"requests/{j}")
                time.sleep(0.002)
            outbox = client._core.outbox
            self.assertGreater(outbox.kept_bytes, 32 << 10)
            self.assertLess(outbox.kept_bytes, (64 << 10) + 16 * 4000 + 1000)
            silent.stop()
            self.assertEqual(client.close(0.1), 200000)

    def test_a_daemon_that_does_not_answer(self):
        with Silent() as silent, Client(silent.url, exit_timeout=0) as client:
            with self.assertRaises(TimedOut):
                client.get("requests", timeout=0.3)
            client.close(0)


class Silent:
    """A daemon that says Welcome, and no more."""

    def __enter__(self):
        import tempfile

        from rationd import ration_pb2 as pb
        from rationd._wire import FrameReader, frame

        self.folder = tempfile.TemporaryDirectory()
        self.url = f"unix:{self.folder.name}/socket"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.url[5:])
        self.listener.listen()
        limits = pb.Limits(max_frame=1 << 20, max_handles=10000, max_items=65536, max_operations_kept=1024)

        def serve():
            while True:
                try:
                    sock, _ = self.listener.accept()
                except OSError:
                    return
                with sock:
                    reader = FrameReader()
                    while (message := reader.take()) is None:
                        reader.feed(sock.recv(4096))
                    reply = pb.Reply(
                        id=pb.Request.FromString(message).id, welcome=pb.Welcome(version=1, limits=limits)
                    )
                    sock.sendall(frame(reply.SerializeToString()))
                    while sock.recv(1 << 20):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        return self

    def stop(self):
        self.listener.close()

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()


class Cuts(DaemonTest):
    def test_a_thousand(self):
        print(f"RATION_SEED={SEED}")
        rng = random.Random(SEED)
        proxy = Proxy(self.daemon, SEED)
        self.addCleanup(proxy.stop)
        with Client(self.daemon.url) as direct:
            direct.metric_set("jobs", "gauge")
            direct.metric_set("spent")
        self.impatient()
        counted = charged = 0
        with Client(proxy.url, send_interval=0.001, timeout=None) as client:
            while proxy.n_cuts < CUTS:
                for _ in range(200):
                    n = rng.randrange(1000)
                    client.incr(f"requests/{rng.randrange(20)}", n)
                    counted += n
                client.charge({"jobs/a": 1, "spent/a": 2})
                charged += 1
                client.uncharge("jobs/a")
                lease = client.lease("spent/b", 10, ttl=30)
                lease.wait(None)
                charged += 5 * lease.try_(10)
                lease.close(None)
            client.charge("jobs/a", 7)
            proxy.cutting = False
            client.flush()
            with Client(self.daemon.url) as direct:
                self.assertEqual(direct.get("requests", consistency="exact").total, counted)
                self.assertEqual(direct.get("jobs", consistency="exact").total, 7)
                self.assertEqual(direct.get("spent", consistency="exact").total, 2 * charged)

    def impatient(self):
        """Come back at once, so that many cuts fit a short time."""
        from rationd import _link

        for name, value in (("BACKOFF_MIN", 0.001), ("BACKOFF_MAX", 0.002)):
            patch = mock.patch.object(_link, name, value)
            patch.start()
            self.addCleanup(patch.stop)


class Kills(DaemonTest):
    keeps = True
    config = "checkpoint_interval = 20ms"

    def test_three_hundred(self):
        print(f"RATION_SEED={SEED}")
        rng = random.Random(SEED)
        Cuts.impatient(self)
        with Client(self.daemon.url) as client:
            client.metric_set("jobs", "gauge")
            client.metric_set("spent")
            client.flush(durable=True)
        client = Client(self.daemon.url, send_interval=0.001, timeout=None)
        self.addCleanup(client.close)
        stop = threading.Event()
        counted = []
        charges = []  # 1 for each that is held still, else 0

        def count():
            total, rng = 0, random.Random(SEED + 1)
            while not stop.is_set():
                for _ in range(50):
                    n = rng.randrange(1000)
                    client.incr(f"requests/{rng.randrange(50)}", n)
                    total += n
                time.sleep(0.001)
            counted.append(total)

        def insist(call, *arguments):
            """What is refused for want of a daemon was not done."""
            while True:
                try:
                    return call(*arguments)
                except Unreachable:
                    time.sleep(0.002)

        def charge():
            while not stop.is_set():
                insist(client.charge, {"jobs/a": 1, "spent/a": 2})
                charges.append(1)
                if rng.random() < 0.5:
                    insist(client.uncharge, "jobs/a")
                    charges[-1] = 0

        threads = [threading.Thread(target=count), threading.Thread(target=charge)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        kills = 0
        while kills < KILLS and time.monotonic() - began < 120:
            time.sleep(rng.uniform(0, 0.05))
            self.daemon.kill()
            self.daemon.start()
            kills += 1
        stop.set()
        for thread in threads:
            thread.join()
        client.flush(durable=True)
        print(f"{kills} kills in {time.monotonic() - began:.1f} s, {len(charges)} charges")
        self.daemon.kill()
        self.daemon.start()
        with Client(self.daemon.url) as direct:
            self.assertEqual(direct.get("requests", consistency="exact").total, counted[0])
            self.assertEqual(direct.get("spent", consistency="exact").total, 2 * len(charges))
            self.assertEqual(direct.get("jobs", consistency="exact").total, sum(charges))


class Clocks(DaemonTest):
    def test_steps_of_the_wall_clock_do_nothing(self):
        """Only the monotonic clock is looked at."""
        for step in (-1e9, 0.0, 1e9):
            with mock.patch("time.time", lambda: step), Client(self.daemon.url) as client:
                client.incr("requests/a")
                client.flush()
                lease = client.lease("requests/b", 5)
                lease.wait()
                self.assertTrue(lease.try_())
                lease.close()
        self.assertEqual(self.total("requests/a"), 3)


class Tcp(unittest.TestCase):
    def test_over_tcp(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        daemon = Daemon(listen=[f"tcp:127.0.0.1:{port}"])
        self.addCleanup(daemon.clean)
        for host in ("127.0.0.1", "localhost"):
            with Client(f"tcp:{host}:{port}") as client:
                client.incr("requests/a", 3)
                client.flush()
        with Client(daemon.url) as client:
            self.assertEqual(client.get("requests/a", consistency="exact").total, 6)


if __name__ == "__main__":
    unittest.main()
