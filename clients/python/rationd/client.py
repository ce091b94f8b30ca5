"""The client."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait as wait_for
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from . import _charging, _process, _queries
from ._address import parse_url
from ._charging import Items
from ._check import MAX_AMOUNT, check_int, check_path, check_timeout, member_of
from ._core import Core, Options
from ._queries import Query
from .counters import Counter, Gauge
from .errors import InvalidArgument, NotFound, RationError, SessionLost
from .lease import Lease
from .quota import Explanation, Limits, Rule, Verdict, Window
from .values import Consistency, Kind, Loss, Metric, Value

T = TypeVar("T")

HOLD_TIME = 1.0  # that the end of a hold waits for the daemon
MAX_LIFETIME = 86400.0

log = logging.getLogger("rationd")


class Client:
    """Counts, reads and charges through rationd. All methods may be called from any thread.

    Nothing is connected before it is needed, and nothing fails because the daemon is away: what is counted
    then is sent when it is back. Times are in seconds; a `timeout` of None waits without a limit.

    Args:
        url: "unix:PATH", "tcp:HOST:PORT" or "tcp:[ADDRESS]:PORT"; None: $RATIOND_SOCKET, else
            unix:/run/rationd/rationd.sock.
        session_lifetime: how long the daemon remembers this client after its connection broke, up to a day.
            What was sent and not acknowledged then is counted once if the client is back within this time;
            what is charged on gauges is held for so long.
        send_interval: how long growth waits at most before it is sent.
        max_unacknowledged: bytes of growth kept until the daemon has acknowledged it; beyond that it is
            merged, counter by counter.
        max_counters: so many counters and gauges this client may make.
        on_loss: called for what can't be counted, from the client's thread; it may count, and must not wait
            for this client. None: it is logged as a warning of the logger "rationd".
        timeout: the default of all others.
        exit_timeout: how long the end of the interpreter may be held up to deliver what is left.
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
        if not 0 <= session_lifetime <= MAX_LIFETIME:
            raise InvalidArgument(
                f"session_lifetime must be 0 to {MAX_LIFETIME:.0f} seconds, not {session_lifetime}"
            )
        if not 0.001 <= send_interval <= 60:
            raise InvalidArgument(f"send_interval must be 0.001 to 60 seconds, not {send_interval}")
        if not 0 <= exit_timeout <= MAX_LIFETIME:
            raise InvalidArgument(f"exit_timeout must be 0 to {MAX_LIFETIME:.0f} seconds, not {exit_timeout}")
        if on_loss is not None and not callable(on_loss):
            raise TypeError(f"on_loss is a function, not {type(on_loss).__name__}")
        self.timeout = check_timeout(timeout)
        self._core = Core(
            Options(
                address=parse_url(url),
                session_lifetime_ms=round(session_lifetime * 1000),
                send_interval=send_interval,
                max_unacknowledged=check_int(max_unacknowledged, 64 << 10, 1 << 30, "max_unacknowledged"),
                max_counters=check_int(max_counters, 1, 1 << 26, "max_counters"),
                on_loss=on_loss,
                exit_timeout=exit_timeout,
            )
        )
        _process.add(self._core)

    @property
    def url(self) -> str:
        """Where the daemon is."""
        return self._core.options.address.url

    # ---- counting ----

    def counter(self, path: str) -> Counter:
        """The counter of a path, for what only grows; the same object for the same path. Keep it: adding to
        it is much faster than looking it up. Raises InvalidArgument.
        """
        return self._core.counters.get(path) or self._core.counter(check_path(path), Counter)

    def gauge(self, path: str) -> Gauge:
        """The gauge of a path, for what goes up and down; its metric must be declared as one, see metric_set."""
        found = self._core.gauges.get(path) or self._core.counter(check_path(path), Gauge)
        assert isinstance(found, Gauge)
        return found

    def incr(self, path: str, n: int = 1) -> None:
        """Add n to a counter. Returns at once."""
        self.counter(path).incr(n)

    increment = incr

    def decr(self, path: str, n: int = 1) -> None:
        """Take n away from a gauge. Returns at once."""
        self.gauge(path).decr(n)

    decrement = decr

    def flush(self, timeout: float | None = -1, *, durable: bool = False) -> None:
        """Wait until everything added before, by any thread, is counted by the daemon (or reported to
        on_loss); durable: and in its file, so that it survives a crash. Raises TimedOut, Unreachable; with
        durable RationError, if the daemon keeps no file (FAILED_PRECONDITION) or can't write to it
        (UNAVAILABLE).
        """
        limit = self._limit(timeout)
        self._core.wait(self._core.flush(durable), limit)

    # ---- reading ----

    def get(
        self, path: str, *, consistency: Consistency | str = Consistency.FRESH, timeout: float | None = -1
    ) -> Value:
        """The value of a path. Raises NotFound. What this client has added is in it after flush, all of it if the
        consistency is EXACT; FRESH may lack a little of what was added last, by whomever.
        """
        found = self.get_many([path], consistency=consistency, timeout=timeout)[0]
        if found is None:
            raise NotFound("no such counter", path)
        return found

    def get_many(
        self,
        paths: Iterable[str],
        *,
        consistency: Consistency | str = Consistency.FRESH,
        timeout: float | None = -1,
    ) -> list[Value | None]:
        """Values of some paths, in their order; None for what is not there. A thousand of them take one round
        trip; timeout is for each of those.
        """
        values: list[Value | None] = []
        for query in _queries.gets(paths, consistency):
            some = self._ask(query, timeout)
            values += some
        return values

    def walk(
        self,
        root: str = "",
        *,
        depth: int | None = None,
        consistency: Consistency | str = Consistency.FRESH,
        timeout: float | None = -1,
    ) -> Iterator[Value]:
        """A subtree, parents before children; "" is all metrics. depth: levels below root; None: all. What is
        there during the whole walk is listed exactly once. timeout is for each part of it. Raises NotFound, and
        RationError: ABORTED, the daemon was started anew meanwhile.
        """
        cursor = b""
        while True:
            values, cursor = self._ask(_queries.walk(root, depth, consistency, cursor), timeout)
            yield from values
            if not cursor:
                return

    # ---- the daemon ----

    def ping(self, timeout: float | None = -1) -> None:
        """Ask whether it is there. Raises Unreachable, TimedOut."""
        self._ask(_queries.ping(), timeout)

    def fold(self, timeout: float | None = -1) -> None:
        """Have it put everything applied into the totals."""
        self._ask(_queries.fold(), timeout)

    def status(self, timeout: float | None = -1) -> dict[str, int | str]:
        """What it says of itself."""
        return self._ask(_queries.status(), timeout)

    def metric_set(
        self,
        name: str,
        kind: Kind | str = Kind.COUNTER,
        *,
        max_counters: int = 0,
        overflow: bool = False,
        expire_after_ms: int = 0,
        timeout: float | None = -1,
    ) -> Metric:
        """Declare a metric, or change it; see Metric. The result is what it is now."""
        kind = member_of(Kind, kind, "the kind of a metric")
        return self._ask(
            _queries.metric_set(Metric(name, kind, max_counters, overflow, expire_after_ms)), timeout
        )

    def metric_get(self, name: str, timeout: float | None = -1) -> Metric:
        """What a metric is. Raises NotFound."""
        return self._ask(_queries.metric_get(name), timeout)

    # ---- quotas ----

    def charge(
        self,
        what: Items,
        n: int = 1,
        *,
        dry_run: bool = False,
        detached: bool = False,
        wait: float = 0.0,
        timeout: float | None = -1,
    ) -> Verdict:
        """Ask for room: n on a path, or amounts on paths ({"a": 1, "b": 2}), all of them or none. Granted if
        this returns; raises Refused, which says by what, else.

        On counters it stays counted. On gauges it is held by this client until uncharge, close, or the end of
        its session.

        Args:
            dry_run: change nothing, and return what would be said, a refusal too.
            detached: of gauges: held by nobody, until an uncharge that says detached.
            wait: if there is no room now: so many seconds for some, first come first served. timeout comes on
                top of it. If that is over before the outcome is known, the client sees to it that nothing
                stays held.
        """
        items = _charging.checked_items(what, n)
        if dry_run:
            return self._ask(_queries.dry_run(items), timeout)
        return self._charge(items, detached, wait, timeout)

    def _charge(
        self,
        items: list[tuple[str, int]],
        detached: bool,
        wait: float,
        timeout: float | None,
        held: _charging.Held | None = None,
    ) -> Verdict:
        wait = _charging.checked_wait(wait)
        limit = self._limit(timeout)
        future = _charging.charge(self._core, items, detached, wait, held)
        try:
            return self._core.wait(future, None if limit is None else limit + wait)
        except BaseException:
            _charging.abandon(self._core, future, items, detached)
            raise

    def uncharge(self, path: str, n: int = 1, *, detached: bool = False, timeout: float | None = -1) -> None:
        """Give back what is charged on a gauge. Raises RationError: FAILED_PRECONDITION, so much is not held
        there.
        """
        limit = self._limit(timeout)
        self._core.wait(_charging.uncharge(self._core, path, n, detached), limit)

    @contextmanager
    def hold(
        self, what: Items, n: int = 1, *, wait: float = 0.0, timeout: float | None = -1
    ) -> Iterator[Verdict]:
        """Hold a charge on gauges for a block:

            with client.hold("jobs/acme"):
                ...

        Raises Refused and what else charge raises before the block is entered. Its end gives back what was
        charged, in the background if the daemon does not answer, and raises nothing.
        """
        items = _charging.checked_items(what, n)
        held = _charging.Held()
        verdict = self._charge(items, False, wait, timeout, held)
        pid = os.getpid()
        try:
            yield verdict
        finally:
            if os.getpid() == pid:
                self._give_back(items, held)

    def _give_back(self, items: list[tuple[str, int]], held: _charging.Held) -> None:
        futures = _charging.give_back(self._core, items, held)
        wait_for(futures, HOLD_TIME)
        for (path, amount), future in zip(items, futures):
            log_give_back(path, amount, future)

    def lease(self, path: str, want: int, *, ttl: float = 10.0, low_water: int | None = None) -> Lease:
        """Take up to `want` units of a path in advance, to be spent by Lease.try_ without asking for each.
        Returns at once; the first units come when the daemon has answered, see Lease.wait.

        Args:
            ttl: how many seconds units may be spent without hearing from the daemon: 1 to 3600, and no more
                than session_lifetime.
            low_water: ask for more when less is left; None: half of want.
        """
        lease = Lease(self._core, check_path(path), *_lease_terms(self._core, path, want, ttl, low_water))
        self._core.post(self._core.add_lease, lease)
        return lease

    def quota_set(
        self, pattern: str, limits: Limits | None = None, *, timeout: float | None = -1, **fields: object
    ) -> list[str]:
        """Set limits at run time for a path or template ("requests/*"), as Limits or its fields:
        quota_set("jobs/acme", max=10). The result is what is unwise about them.
        """
        return self._ask(_queries.quota_set(pattern, limits_of(limits, fields)), timeout)

    def quota_remove(
        self, pattern: str, window: Window | None = None, *, timeout: float | None = -1
    ) -> list[str]:
        """Remove limits set at run time, in all windows or one; what the configuration says holds again.
        Raises NotFound.
        """
        return self._ask(_queries.quota_remove(pattern, window), timeout)

    def quota_list(self, *, timeout: float | None = -1) -> Iterator[Rule]:
        """All rules."""
        cursor = b""
        while True:
            rules, cursor = self._ask(_queries.quota_list(cursor), timeout)
            yield from rules
            if not cursor:
                return

    def quota_explain(self, path: str, *, timeout: float | None = -1) -> Explanation:
        """What limits a path, and how near it is. Raises NotFound."""
        return self._ask(_queries.quota_explain(path), timeout)

    # ---- the end ----

    def close(self, timeout: float | None = -1) -> int:
        """Deliver what is left, give back what is held, and end the session. Returns how much, in magnitude,
        the daemon did not acknowledge in time; that is also reported to on_loss. What is added afterwards is
        lost. A client that is not closed is closed at the end of the interpreter, within exit_timeout.
        """
        limit = self._limit(timeout)
        undelivered = self._core.close(MAX_LIFETIME if limit is None else limit)
        _process.remove(self._core)
        return undelivered

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    # ---- waiting ----

    def _limit(self, timeout: float | None) -> float | None:
        """-1 stands for the client's own timeout. Called before anything is sent."""
        return self.timeout if timeout == -1 else check_timeout(timeout)

    def _ask(self, query: Query[T], timeout: float | None) -> T:
        limit = self._limit(timeout)
        return self._core.wait(self._core.ask(query), limit)


def log_give_back(path: str, amount: int, future: Future[None]) -> None:
    """Whether the end of a hold has failed. Where the session is lost there is nothing left to give back, and
    what has no answer yet goes on in the background.
    """
    error = future.exception() if future.done() and not future.cancelled() else None
    if error is not None and not isinstance(error, SessionLost):
        log.warning("%s: %d held could not be given back: %s", path, amount, error)


def limits_of(limits: Limits | None, fields: dict[str, object]) -> Limits:
    """Limits, or their fields."""
    if limits is None:
        return Limits(**fields)  # type: ignore[arg-type]
    if fields:
        raise TypeError("give Limits or its fields, not both")
    return limits


def _lease_terms(core: Core, path: str, want: int, ttl: float, low_water: int | None) -> tuple[int, int, int]:
    want = check_int(want, 1, MAX_AMOUNT, "want", path)
    most = min(3600.0, core.options.session_lifetime_ms / 1000)
    if not 1 <= ttl <= most:
        raise InvalidArgument(f"ttl must be 1 to {most:g} seconds, not {ttl}", path)
    low = want - want // 2 if low_water is None else check_int(low_water, 0, want, "low_water", path)
    return want, round(ttl * 1000), low
