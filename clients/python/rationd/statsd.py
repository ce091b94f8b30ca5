"""For programs that speak StatsD: a client in the shape of statsd.StatsClient, which counts in rationd.

    from rationd.statsd import StatsClient      # was: from statsd import StatsClient

    statsd = StatsClient(prefix="web")
    statsd.incr("acme.hits")                    # counts at web/acme/hits

Names with dots become paths. What rationd does not keep, timings, sets and gauges that are set to a value,
raises NotImplementedError, unless the client was made with ignore_others=True: then it does nothing. A rate
is taken and has no effect: every call is counted, exactly, where StatsD would guess from some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from .client import Client
from .counters import Counter

__all__ = ["Pipeline", "StatsClient"]

F = TypeVar("F", bound=Callable[..., Any])


class StatsClient:
    """As statsd.StatsClient.

    Args:
        host, port, maxudpsize, ipv6: taken, so that calls need not be changed, and not used: `url` says where
            rationd is.
        prefix: put before each name.
        url, client: where rationd is, as for rationd.Client; or a client to count with, which is not closed
            by close().
        separator: what separates segments in names.
        ignore_others: do nothing where rationd has nothing of the kind.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 8125,
        prefix: str | None = None,
        maxudpsize: int = 512,
        ipv6: bool = False,
        *,
        url: str | None = None,
        client: Client | None = None,
        separator: str = ".",
        ignore_others: bool = False,
    ) -> None:
        self._own = client is None
        self._client = Client(url) if client is None else client
        self._prefix = prefix
        self._separator = separator
        self._ignore_others = ignore_others
        self._names: dict[str, Counter] = {}

    # ---- what is counted ----

    def incr(self, stat: str, count: int = 1, rate: float = 1) -> None:
        """Count. A negative count needs a metric that is a gauge."""
        self._counter(stat, gauge=count < 0).incr(count)

    def decr(self, stat: str, count: int = 1, rate: float = 1) -> None:
        """Count down; the metric must be declared as a gauge."""
        self.incr(stat, -count, rate)

    def _counter(self, stat: str, gauge: bool) -> Counter:
        key = stat + "\0" if gauge else stat
        found = self._names.get(key)
        if found is None:
            name = stat if not self._prefix else f"{self._prefix}{self._separator}{stat}"
            path = name.replace(self._separator, "/")
            found = self._client.gauge(path) if gauge else self._client.counter(path)
            self._names[key] = found
        return found

    # ---- pipelines ----

    def pipeline(self) -> Pipeline:
        """Counts that are made together, by send or at the end of a with block."""
        return Pipeline(self)

    # ---- what is not ----

    def _other(self, what: str) -> None:
        if not self._ignore_others:
            raise NotImplementedError(
                f"rationd keeps counts; {what} is for another server (or say ignore_others=True)"
            )

    def timing(self, stat: str, delta: object, rate: float = 1) -> None:
        """Not kept."""
        self._other("timing")

    def timer(self, stat: str, rate: float = 1) -> Timer:
        """Not kept. Where others are ignored, a context manager and decorator that does nothing."""
        self._other("timer")
        return Timer()

    def gauge(self, stat: str, value: float, rate: float = 1, delta: bool = False) -> None:
        """With delta=True, a change by a whole number; setting a value is not for what several programs count
        together.
        """
        if delta and value == int(value):
            self._counter(stat, gauge=True).incr(int(value))
        else:
            self._other("setting a gauge to a value")

    def set(self, stat: str, value: object, rate: float = 1) -> None:
        """Not kept."""
        self._other("set")

    def close(self) -> None:
        """Deliver what is left."""
        if self._own:
            self._client.close()


class Timer:
    """Does nothing, in every way in which a StatsD timer is used."""

    ms = None

    def __call__(self, function: F) -> F:
        return function

    def __enter__(self) -> Timer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def start(self) -> Timer:
        """Nothing."""
        return self

    def stop(self, send: bool = True) -> Timer:
        """Nothing."""
        return self

    def send(self) -> None:
        """Nothing."""


class Pipeline(StatsClient):
    """Counts that wait for send()."""

    def __init__(self, parent: StatsClient) -> None:
        self._parent = parent
        self._ignore_others = parent._ignore_others
        self._calls: list[tuple[str, int, float]] = []

    def incr(self, stat: str, count: int = 1, rate: float = 1) -> None:
        """Count at send()."""
        self._calls.append((stat, count, rate))

    def gauge(self, stat: str, value: float, rate: float = 1, delta: bool = False) -> None:
        """With delta=True, at once."""
        self._parent.gauge(stat, value, rate, delta)

    def send(self) -> None:
        """Count all of them."""
        calls, self._calls = self._calls, []
        for stat, count, rate in calls:
            self._parent.incr(stat, count, rate)

    def pipeline(self) -> NoReturn:
        """A pipeline in a pipeline."""
        raise NotImplementedError("a pipeline in a pipeline")

    def close(self) -> None:
        """What was not sent is forgotten."""
        self._calls.clear()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.send()
