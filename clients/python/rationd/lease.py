"""Leases: units charged in advance, to be spent without asking for each."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING

from . import ration_pb2 as pb
from ._asking import reject, resolve
from ._check import MAX_AMOUNT, check_int, check_timeout
from ._operations import Knows, Operation
from ._queries import binding_of, metric_get
from .counters import Counter
from .errors import ClientClosed, Code, RationError, Refused, SessionLost
from .values import Kind, Metric

if TYPE_CHECKING:
    from ._core import Core

RETRY_TIME = 1.0  # after a refusal, before the daemon is asked again
MAX_RETRY_TIME = 10.0

log = logging.getLogger("rationd")


class Lease:
    """A stock of units of one path. Made by Client.lease; spent by try_ from any thread.

    The client's thread keeps it filled: it asks for more when less than low_water is left, and renews it in
    time. After a fork the child's is empty, and is opened anew by its first try_.
    """

    def __init__(self, core: Core, path: str, want: int, ttl_ms: int, low_water: int) -> None:
        self.path = path
        self.want = want
        self.ttl_ms = ttl_ms
        self.low_water = low_water
        self._core = core
        self._counter = core.counter(path, Counter)  # for what was spent and can't be reported
        self._number = 0
        self._kind: Kind | None = None
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()  # of what try_ and the client's thread share:
        self._left = 0
        self._spent = 0  # since the last report
        self._reported = 0  # in all
        self._expires = 0.0
        self._asked = True  # the client's thread will see to it
        # Of the client's thread alone:
        self._open = False
        self._operation: Operation | None = None  # under way
        self._opening: Operation | None = None  # the one that opened it
        self._retry_at = 0.0
        self._renew_at = 0.0
        self._closing: Future[int] | None = None
        self._waiters: list[Future[None]] = []
        self._refusal: RationError | None = None
        self._under_way = 0  # in the report that is
        self._untold = 0  # in none, and the lease is gone

    # ---- any thread ----

    def try_(self, n: int = 1) -> bool:
        """Spend n units, or not: decided here and now. Never are more spent than the daemon gave."""
        if n.__class__ is not int or not 1 <= n <= MAX_AMOUNT:
            n = check_int(n, 1, MAX_AMOUNT, "units", self.path)
        with self._lock:
            good = self._left >= n and time.monotonic() < self._expires
            if good:
                self._left -= n
                self._spent += n
            ask = self._left < self.low_water and not self._asked
            if ask:
                self._asked = True
        if ask:
            self._core.post(self._core.step_lease, self)
        elif not good and self._core.thread is None:
            self._core.wake()  # in the child of a fork
        return good

    def give(self, n: int = 1) -> None:
        """Give n spent units back: of a gauge, when what they stood for has ended. On a counter: only what
        was not used after all.
        """
        n = check_int(n, 1, MAX_AMOUNT, "units", self.path)
        with self._lock:
            here = min(n, self._spent)
            self._spent -= here
            self._left += here
            there = min(n - here, self._reported)
            self._reported -= there
        if there:
            self._core.post(self._core.uncharge_quietly, self.path, there)

    @property
    def left(self) -> int:
        """Units that can be spent now."""
        with self._lock:
            return self._left if time.monotonic() < self._expires else 0

    @property
    def spent(self) -> int:
        """Units spent since it was opened, less those given back."""
        with self._lock:
            return self._spent + self._reported

    @property
    def expires_in(self) -> float:
        """Seconds for which its units may be spent; 0: it has expired, or never had any."""
        return max(0.0, self._expires - time.monotonic())

    def wait(self, timeout: float | None = 10.0) -> None:
        """Wait until it has a unit. Raises Refused, TimedOut, Unreachable, or what the daemon has answered."""
        limit = check_timeout(timeout)
        self._core.wait(self.ready(), limit, self.path)

    def ready(self) -> Future[None]:
        """A future that is done when it has a unit."""
        future: Future[None] = Future()
        self._core.post(self._wait, future)
        return future

    def close(self, timeout: float | None = 10.0) -> int:
        """Report what was spent and return the rest; how many units that was. Spent units of a gauge stay
        held by the client: give them back by Client.uncharge. When the time is over the client goes on with
        it in the background.
        """
        limit = check_timeout(timeout)
        return self._core.wait(self.returned(), limit, self.path)

    def returned(self) -> Future[int]:
        """The same, without waiting."""
        future: Future[int] = Future()
        self._core.post(self._close, future)
        return future

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RationError as failure:
            log.warning("%s: a lease is returned in the background: %s", self.path, failure)

    def __repr__(self) -> str:
        return f"<Lease {self.path!r}, {self._left} of {self.want} left>"

    # ---- the client's thread ----

    def _wait(self, future: Future[None]) -> None:
        if self.left > 0:
            resolve(future, None)
        elif self._closing is not None:
            reject(future, RationError(Code.FAILED_PRECONDITION, "the lease is closed", self.path))
        else:
            self._waiters.append(future)
            self._asked = True
            self._retry_at = (
                min(self._retry_at, time.monotonic()) if self._refusal is None else self._retry_at
            )
            self._tell()

    def _tell(self) -> None:
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if self._refusal is not None:
                reject(future, self._refusal)
            elif self._left > 0:
                resolve(future, None)
            else:
                self._waiters.append(future)

    def _close(self, future: Future[int]) -> None:
        if self._closing is not None:
            reject(future, RationError(Code.FAILED_PRECONDITION, "the lease is closed", self.path))
            return
        self._closing = future
        self._core.step_lease(self)

    def next_time(self) -> float | None:
        """When step has something to do of itself."""
        if self._operation is not None:
            return None
        if self._closing is not None:
            return 0.0
        if not self._open:
            return self._retry_at if self._asked else None
        return min(self._retry_at, self._renew_at) if self._asked else self._renew_at

    def step(self, now: float) -> bool:
        """Do what is due. True: it is closed."""
        if self._operation is not None:
            return False
        if self._closing is not None:
            return self._return()
        if not self._open:
            if self._asked and now >= self._retry_at:
                self._start(
                    pb.Lease(lease=self._number, path=self.path, want=self.want, ttl_ms=self.ttl_ms),
                    self._opened,
                )
                self._opening = self._operation
        elif self._asked and now >= self._retry_at or now >= self._renew_at:
            body = pb.LeaseRenew(lease=self._number, spent=self._report(), want=self.want)
            self._start(body, self._renewed)
        return False

    def _report(self) -> int:
        """What was spent and is not reported yet: it is about to be."""
        with self._lock:
            self._under_way, self._spent = self._spent, 0
            self._reported += self._under_way
        return self._under_way

    def _reported_in_vain(self) -> None:
        with self._lock:
            self._spent += self._under_way
            self._reported -= self._under_way
            self._under_way = 0

    def _start(self, body: pb.Lease | pb.LeaseRenew | pb.LeaseReturn, take: object) -> None:
        operation = Operation(body, take, self.path)  # type: ignore[arg-type]
        operation.waits_for_daemon = True
        operation.dies_with_session = not isinstance(body, pb.Lease)
        self._operation = operation
        self._core.operations.add(operation)

    def _opened(self, reply: pb.Reply | None, error: RationError | None) -> None:
        operation, self._operation = self._operation, None
        assert operation is not None
        self._open = reply is not None and reply.leased.granted > 0
        if self._open:
            self._ask_kind()
        self._granted(operation, reply, error)

    def _renewed(self, reply: pb.Reply | None, error: RationError | None) -> None:
        operation, self._operation = self._operation, None
        assert operation is not None
        if error is not None:
            self._reported_in_vain()
        if is_gone(error):
            self._lose()
        else:
            self._granted(operation, reply, error)

    def _granted(self, operation: Operation, reply: pb.Reply | None, error: RationError | None) -> None:
        now = time.monotonic()
        self._refusal = None
        self._retry_at = now
        if reply is None:
            self._refusal = error
            self._retry_at = now + RETRY_TIME
        else:
            leased = reply.leased
            ttl = (leased.ttl_ms or self.ttl_ms) / 1000
            with self._lock:
                self._left += leased.granted
                if self._open:
                    self._expires = operation.sent_at + ttl
                self._asked = self._left < self.low_water
            self._renew_at = operation.sent_at + ttl / 2
            if leased.granted == 0:
                refusal = Refused([binding_of(binding) for binding in leased.bindings], leased.omitted)
                self._retry_at = now + min(MAX_RETRY_TIME, max(RETRY_TIME, refusal.retry_after_ms / 1000))
                self._refusal = refusal if self._left == 0 else None
        self._tell()

    def _lose(self) -> None:
        """The daemon does not know it any more: what it held was given back. What was spent has happened."""
        with self._lock:
            self._untold += self._spent
            self._left = self._spent = self._reported = 0
            self._expires = 0.0
            self._asked = True
        self._tell_spent()
        self._open = False
        self._opening = None
        self._retry_at = 0.0

    def session(self, knows: Knows) -> None:
        """The client has a connection again."""
        gone = (
            knows is Knows.FORGOTTEN
            or knows is Knows.NOTHING
            and self._opening not in self._core.operations.kept
        )
        if self._open and gone:
            self._lose()
        if self._open or self._untold:
            self._ask_kind()

    def _ask_kind(self) -> None:
        if self._kind is not None:
            return
        asked: Future[Metric] = Future()

        def take(done: Future[Metric]) -> None:
            if not done.cancelled() and done.exception() is None:
                self._kind = done.result().kind
                self._tell_spent()

        asked.add_done_callback(take)
        self._core.questions.add(metric_get(self.path.partition("/")[0]), asked)

    def _tell_spent(self) -> None:
        """Of a counter, what no report will say is added."""
        if self._kind is not None:
            if self._kind is Kind.COUNTER and self._untold:
                self._core.outbox.add(self._counter, self._untold)
            self._untold = 0

    def end(self, error: RationError) -> None:
        """The client ends, and there is no daemon that could be told."""
        self._lose()
        if self._closing is not None:
            reject(self._closing, error)
        self._refusal = error
        self._tell()

    def _return(self) -> bool:
        assert self._closing is not None
        with self._lock:
            left, self._left = self._left, 0
        if not self._open:
            resolve(self._closing, 0)
            return True
        future = self._closing

        def take(reply: pb.Reply | None, error: RationError | None) -> None:
            self._operation = None
            if error is not None:
                self._reported_in_vain()
            if is_gone(error):
                self._lose()
            if error is None or is_gone(error):
                resolve(future, left)
            else:
                reject(future, error)

        self._open = False
        self._start(pb.LeaseReturn(lease=self._number, spent=self._report()), take)
        return False


def is_gone(error: RationError | None) -> bool:
    """An answer about a lease: there is none such, or not as we have it in the books."""
    if error is None or isinstance(error, ClientClosed):
        return False
    return isinstance(error, SessionLost) or error.code in (Code.NOT_FOUND, Code.FAILED_PRECONDITION)
