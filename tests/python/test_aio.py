"""The client for asyncio."""

import asyncio
import contextlib
import time
import unittest
from unittest import mock

from rationd import NotFound, Refused, TimedOut, Unreachable
from rationd.aio import Client
from support import DaemonTest, wait_until


class Aio(DaemonTest):
    def test_all_of_it(self):
        async def main():
            async with Client(self.daemon.url) as client:
                client.incr("requests/a", 5)
                client.counter("requests/b").incr()
                await client.flush()
                self.assertEqual((await client.get("requests", consistency="exact")).total, 6)
                self.assertEqual(len([value async for value in client.walk("requests")]), 3)
                with self.assertRaises(NotFound):
                    await client.get("none")
                await client.metric_set("jobs", "gauge")
                await client.quota_set("jobs/acme", max=2)
                self.assertEqual([rule.pattern async for rule in client.quota_list()], ["jobs/acme"])
                self.assertEqual((await client.quota_explain("jobs/acme")).levels[0].limits.max, 2)
                async with client.hold("jobs/acme", 2):
                    with self.assertRaises(Refused):
                        await client.charge("jobs/acme")
                self.assertTrue(await client.charge("jobs/acme", dry_run=True))
                async with client.lease("jobs/acme", 2) as lease:
                    await lease.wait()
                    self.assertTrue(lease.try_())
                await client.uncharge("jobs/acme")
                await client.quota_remove("jobs/acme")
                await asyncio.gather(client.ping(), client.fold(), client.status(), client.metric_get("jobs"))

        asyncio.run(main())
        self.assertEqual(self.total("jobs"), 0)

    def test_many_at_once(self):
        async def one(client, i):
            async with client.hold("jobs/a", 1):
                client.incr("requests/a", i)

        async def main():
            async with Client(self.daemon.url) as client:
                await client.metric_set("jobs", "gauge")
                await asyncio.gather(*(one(client, i) for i in range(500)))

        asyncio.run(main())
        self.assertEqual((self.total("requests/a"), self.total("jobs")), (sum(range(500)), 0))

    def test_a_loop_that_is_closed_with_increments_pending(self):
        program = """
import asyncio
from rationd.aio import Client
async def main():
    client = Client(send_interval=30)
    client.incr("requests/a", 5)
    return client
client = asyncio.run(main())
async def again():
    client.incr("requests/a", 6)
asyncio.run(again())
"""
        self.run_program(program)
        self.assertEqual(self.total("requests/a"), 11)

    def test_a_charge_that_is_cancelled_leaves_nothing(self):
        async def main():
            async with Client(self.daemon.url) as client:
                await client.metric_set("jobs", "gauge")
                await client.quota_set("jobs", max=1)
                await client.charge("jobs/a")
                task = asyncio.create_task(client.charge("jobs/b", wait=60))
                await asyncio.sleep(0.05)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await client.uncharge("jobs/a")
                while (await client.get("jobs", consistency="exact")).total != 0:
                    await asyncio.sleep(0.005)

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_a_charge_that_is_cancelled_when_its_answer_is_there_leaves_nothing(self):
        """The client's thread has the answer, the event loop was busy and has not seen it."""

        async def main():
            async with Client(self.daemon.url, timeout=None) as client:
                await client.metric_set("jobs", "gauge")
                task = asyncio.create_task(client.charge("jobs/a"))
                await asyncio.sleep(0)
                wait_until(lambda: self.total("jobs") == 1)
                wait_until(lambda: client._core.operations.n_due == 0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                wait_until(lambda: self.total("jobs") == 0, "it is given back")

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_the_end_of_a_hold_of_many_does_not_wait_for_each(self):
        paths = {f"jobs/{i}": 1 for i in range(200)}

        async def main():
            async with Client(self.daemon.url) as client:
                await client.metric_set("jobs", "gauge")
                with contextlib.ExitStack() as stack:
                    async with client.hold(paths):
                        stack.enter_context(self.daemon.stuck())
                        begun = time.monotonic()
                    self.assertLess(time.monotonic() - begun, 0.5 * len(paths) / 2)

        with mock.patch("rationd.client.HOLD_TIME", 0.5):
            asyncio.run(main())
        self.assertEqual(self.total("jobs"), 0)

    def test_times(self):
        async def main():
            client = Client("unix:/nonexistent", timeout=0.2, exit_timeout=0)
            with self.assertRaises(Unreachable):
                await client.ping()
            with self.assertRaises((Unreachable, TimedOut)):
                client.incr("requests/a")
                await client.flush()
            await client.close(0)

        with self.assertLogs("rationd", "WARNING"):
            asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
