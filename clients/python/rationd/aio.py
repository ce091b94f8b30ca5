"""The client for asyncio: what waits is awaited, what only counts is not.

    from rationd.aio import Client

    async with Client() as client:
        client.incr("requests/acme/web")
        async with client.hold("jobs/acme"):
            ...

Behind it works the same thread as behind rationd.Client, so that nothing is lost with an event loop that is
closed while growth is pending. A client may be used from several loops and threads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TypeVar

from . import _charging, _queries, client as sync
from ._charging import Items
from ._check import member_of
from ._queries import Query
from .counters import Counter, Gauge
from .errors import NotFound, RationError
from .lease import Lease as SyncLease
from .quota import Explanation, Limits, Rule, Verdict, Window
from .values import Consistency, Kind, Loss, Metric, Value

__all__ = ["Client", "Lease"]

T = TypeVar("T")


class Lease:
    """A stock of units, as rationd.Lease; made by Client.lease."""

    def __init__(self, client: Client, lease: SyncLease) -> None:
        self._client = client
        self._lease = lease

    def try_(self, n: int = 1) -> bool:
        """Spend n units, or not: decided here and now."""
        return self._lease.try_(n)

    def give(self, n: int = 1) -> None:
        """Give n spent units back."""
        self._lease.give(n)

    @property
    def left(self) -> int:
        """Units that can be spent now."""
        return self._lease.left

    @property
    def spent(self) -> int:
        """Units spent since it was opened, less those given back."""
        return self._lease.spent

    async def wait(self, timeout: float | None = -1) -> None:
        """Wait until it has a unit. Raises Refused, TimedOut, Unreachable, or what the daemon has answered."""
        limit = self._client._client._limit(timeout)
        await self._client._wait(self._lease.ready(), limit)

    async def close(self, timeout: float | None = -1) -> int:
        """Report what was spent and return the rest; how many units that was."""
        limit = self._client._client._limit(timeout)
        return await self._client._wait(self._lease.returned(), limit)

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except RationError as failure:
            sync.log.warning("%s: a lease is returned in the background: %s", self._lease.path, failure)


class Client:
    """Counts, reads and charges through rationd, from coroutines. The arguments are those of rationd.Client.

    A coroutine that is cancelled while it waits for a charge leaves nothing held: what is granted later is
        given back.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        session_lifetime: float = 60.0,
        send_interval: float = 0.05,
        max_unacknowledged: int = 4 << 20,
        max_counters: int = 1_000_000,
        on_loss: Callable[[Loss], None] | None = None,
        timeout: float | None = 10.0,
        exit_timeout: float = 2.0,
    ) -> None:
        self._client = sync.Client(
            url,
            session_lifetime=session_lifetime,
            send_interval=send_interval,
            max_unacknowledged=max_unacknowledged,
            max_counters=max_counters,
            on_loss=on_loss,
            timeout=timeout,
            exit_timeout=exit_timeout,
        )
        self._core = self._client._core

    @property
    def url(self) -> str:
        """Where the daemon is."""
        return self._client.url

    # ---- counting ----

    def counter(self, path: str) -> Counter:
        """The counter of a path; its incr returns at once, and is not awaited."""
        return self._client.counter(path)

    def gauge(self, path: str) -> Gauge:
        """The gauge of a path."""
        return self._client.gauge(path)

    def incr(self, path: str, n: int = 1) -> None:
        """Add n to a counter. Returns at once."""
        self._client.incr(path, n)

    increment = incr

    def decr(self, path: str, n: int = 1) -> None:
        """Take n away from a gauge. Returns at once."""
        self._client.decr(path, n)

    decrement = decr

    async def flush(self, timeout: float | None = -1, *, durable: bool = False) -> None:
        """Wait until everything added before is counted by the daemon, or durable."""
        limit = self._client._limit(timeout)
        await self._wait(self._core.flush(durable), limit)

    # ---- reading ----

    async def get(
        self, path: str, *, consistency: Consistency | str = Consistency.FRESH, timeout: float | None = -1
    ) -> Value:
        """The value of a path. Raises NotFound."""
        found = (await self.get_many([path], consistency=consistency, timeout=timeout))[0]
        if found is None:
            raise NotFound("no such counter", path)
        return found

    async def get_many(
        self,
        paths: Iterable[str],
        *,
        consistency: Consistency | str = Consistency.FRESH,
        timeout: float | None = -1,
    ) -> list[Value | None]:
        """Values of some paths, in their order; None for what is not there."""
        values: list[Value | None] = []
        for query in _queries.gets(paths, consistency):
            some = await self._ask(query, timeout)
            values += some
        return values

    async def walk(
        self,
        root: str = "",
        *,
        depth: int | None = None,
        consistency: Consistency | str = Consistency.FRESH,
        timeout: float | None = -1,
    ) -> AsyncIterator[Value]:
        """A subtree, parents before children; "" is all metrics."""
        cursor = b""
        while True:
            values, cursor = await self._ask(_queries.walk(root, depth, consistency, cursor), timeout)
            for value in values:
                yield value
            if not cursor:
                return

    # ---- the daemon ----

    async def ping(self, timeout: float | None = -1) -> None:
        """Ask whether it is there."""
        await self._ask(_queries.ping(), timeout)

    async def fold(self, timeout: float | None = -1) -> None:
        """Have it put everything applied into the totals."""
        await self._ask(_queries.fold(), timeout)

    async def status(self, timeout: float | None = -1) -> dict[str, int | str]:
        """What it says of itself."""
        return await self._ask(_queries.status(), timeout)

    async def metric_set(
        self,
        name: str,
        kind: Kind | str = Kind.COUNTER,
        *,
        max_counters: int = 0,
        overflow: bool = False,
        expire_after_ms: int = 0,
        timeout: float | None = -1,
    ) -> Metric:
        """Declare a metric, or change it; see Metric."""
        kind = member_of(Kind, kind, "the kind of a metric")
        query = _queries.metric_set(Metric(name, kind, max_counters, overflow, expire_after_ms))
        return await self._ask(query, timeout)

    async def metric_get(self, name: str, timeout: float | None = -1) -> Metric:
        """What a metric is. Raises NotFound."""
        return await self._ask(_queries.metric_get(name), timeout)

    # ---- quotas ----

    async def charge(
        self,
        what: Items,
        n: int = 1,
        *,
        dry_run: bool = False,
        detached: bool = False,
        wait: float = 0.0,
        timeout: float | None = -1,
    ) -> Verdict:
        """Ask for room, as rationd.Client.charge. Raises Refused."""
        items = _charging.checked_items(what, n)
        if dry_run:
            return await self._ask(_queries.dry_run(items), timeout)
        return await self._charge(items, detached, wait, timeout)

    async def _charge(
        self,
        items: list[tuple[str, int]],
        detached: bool,
        wait: float,
        timeout: float | None,
        held: _charging.Held | None = None,
    ) -> Verdict:
        wait = _charging.checked_wait(wait)
        limit = self._client._limit(timeout)
        future = _charging.charge(self._core, items, detached, wait, held)
        try:
            return await self._wait(future, None if limit is None else limit + wait)
        except BaseException:
            # The client's thread may have the answer already, and the loop not: whoever is cancelled then gets none.
            _charging.abandon(self._core, future, items, detached)
            raise

    async def uncharge(
        self, path: str, n: int = 1, *, detached: bool = False, timeout: float | None = -1
    ) -> None:
        """Give back what is charged on a gauge."""
        limit = self._client._limit(timeout)
        await self._wait(_charging.uncharge(self._core, path, n, detached), limit)

    @asynccontextmanager
    async def hold(
        self, what: Items, n: int = 1, *, wait: float = 0.0, timeout: float | None = -1
    ) -> AsyncIterator[Verdict]:
        """Hold a charge on gauges for a block, as rationd.Client.hold."""
        items = _charging.checked_items(what, n)
        held = _charging.Held()
        verdict = await self._charge(items, False, wait, timeout, held)
        pid = os.getpid()
        try:
            yield verdict
        finally:
            if os.getpid() == pid:
                await self._give_back(items, held)

    async def _give_back(self, items: list[tuple[str, int]], held: _charging.Held) -> None:
        futures = _charging.give_back(self._core, items, held)
        waiting = [asyncio.wrap_future(future) for future in futures]
        try:
            await asyncio.wait(waiting, timeout=sync.HOLD_TIME)
        finally:
            for one in waiting:
                if not one.cancel() and not one.cancelled():
                    one.exception()  # it is looked at below
        for (path, amount), future in zip(items, futures):
            sync.log_give_back(path, amount, future)

    def lease(self, path: str, want: int, *, ttl: float = 10.0, low_water: int | None = None) -> Lease:
        """Take up to `want` units in advance, as rationd.Client.lease."""
        return Lease(self, self._client.lease(path, want, ttl=ttl, low_water=low_water))

    async def quota_set(
        self, pattern: str, limits: Limits | None = None, *, timeout: float | None = -1, **fields: object
    ) -> list[str]:
        """Set limits at run time, as rationd.Client.quota_set."""
        return await self._ask(_queries.quota_set(pattern, sync.limits_of(limits, fields)), timeout)

    async def quota_remove(
        self, pattern: str, window: Window | None = None, *, timeout: float | None = -1
    ) -> list[str]:
        """Remove limits set at run time, in all windows or one."""
        return await self._ask(_queries.quota_remove(pattern, window), timeout)

    async def quota_list(self, *, timeout: float | None = -1) -> AsyncIterator[Rule]:
        """All rules."""
        cursor = b""
        while True:
            rules, cursor = await self._ask(_queries.quota_list(cursor), timeout)
            for rule in rules:
                yield rule
            if not cursor:
                return

    async def quota_explain(self, path: str, *, timeout: float | None = -1) -> Explanation:
        """What limits a path, and how near it is."""
        return await self._ask(_queries.quota_explain(path), timeout)

    # ---- the end ----

    async def close(self, timeout: float | None = -1) -> int:
        """Deliver what is left, as rationd.Client.close; the loop goes on meanwhile."""
        self._client._limit(timeout)
        return await asyncio.get_running_loop().run_in_executor(None, self._client.close, timeout)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio.Client {self.url}>"

    # ---- waiting ----

    async def _wait(self, future: Future[T], limit: float | None) -> T:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limit)
        except asyncio.TimeoutError as error:
            if isinstance(error, RationError):
                raise
            raise self._core.late() from None

    async def _ask(self, query: Query[T], timeout: float | None) -> T:
        limit = self._client._limit(timeout)
        return await self._wait(self._core.ask(query), limit)
