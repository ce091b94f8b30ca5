"""What stands behind a client: its thread, and all that this carries between the program and the daemon.

The program's threads leave growth in lists of the counters, and everything else as calls in `posts`; the
client's thread alone touches the outbox, the operations, the questions, the leases and the connection. So
there are no locks but two: for making counters, and for starting the thread.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, TypeVar

from . import ration_pb2 as pb
from ._address import Address
from ._asking import Questions, reject, resolve
from ._link import Link, State
from ._operations import Knows, Operation, Operations
from ._outbox import Outbox
from ._queries import Query
from .counters import Counter, Gauge
from .errors import ClientClosed, Code, RationError, TimedOut, Unreachable, error_of
from .lease import Lease
from .values import Loss

T = TypeVar("T")

COLLECT_TIME = 0.25  # that numbers stand in the lists of counters at most, before they are one sum
END_TIME = 1.0  # for the answer to an End
BUSY_TIME = 0.05  # between steps while the daemon does not answer a closing client

log = logging.getLogger("rationd")


@dataclass(frozen=True)
class Options:
    """How a client is to work; see Client."""

    address: Address
    session_lifetime_ms: int
    send_interval: float
    max_unacknowledged: int
    max_counters: int
    on_loss: Callable[[Loss], None] | None
    exit_timeout: float


class Flushing:
    """Somebody waits until what was added is applied, or durable."""

    __slots__ = ("future", "target", "durable", "asked")

    def __init__(self, future: Future[None], target: int, durable: bool) -> None:
        self.future = future
        self.target = target  # a ticket of the outbox
        self.durable = durable
        self.asked = False  # on this connection


class Core:
    """See above."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.counters: dict[str, Counter] = {}
        self.gauges: dict[str, Gauge] = {}
        self.outbox = Outbox(self._lose)
        self.operations = Operations(options.max_unacknowledged)
        self.questions = Questions()
        self.link = Link(
            options.address,
            options.session_lifetime_ms,
            options.max_unacknowledged,
            self.outbox,
            self.operations,
            self.questions,
            self._welcomed,
        )
        self.leases: list[Lease] = []
        self.lease_number = 0  # of the last one; in the child of a fork they keep theirs
        self._wake_fds: tuple[int, int] | None = None
        self._begin()

    def _begin(self) -> None:
        self.lock = threading.RLock()
        self.thread: threading.Thread | None = None
        self.sleeping = True
        self.posts: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self.dirty: deque[Counter] = deque()
        self.collect_at: float | None = None
        self.send_at: float | None = None  # what is collected by then
        self.said_late = False  # that something was added after the end
        self.flushes: list[Flushing] = []
        self.closing: Future[int] | None = None
        self.ending = False  # the client's thread has heard of that
        self.giving_up = False  # what is left is lost, of which is said how much it is
        self.close_by = 0.0
        self.end_by: float | None = None
        self.linger_by = 0.0
        self.not_durable = False
        self.closed = False
        self.n_undelivered = 0

    # ---- any thread ----

    def counter(self, path: str, kind: type[Counter]) -> Counter:
        """The counter of a path that was checked; made if need be."""
        known: dict[str, Any] = self.counters
        if kind is Gauge:
            known = self.gauges
        with self.lock:
            found: Counter | None = known.get(path)
            if found is None:
                if len(self.gauges) + len(self.counters) >= self.options.max_counters:
                    raise RationError(
                        Code.RESOURCE_EXHAUSTED,
                        f"{self.options.max_counters} counters, max_counters of this client",
                        path,
                    )
                found = known[path] = kind(self, path)
            return found

    def note_dirty(self, counter: Counter) -> None:
        """Something was added to it, for the first time since it was emptied."""
        self.dirty.append(counter)
        if self.closed:
            self._drop_dirty()
        elif self.sleeping:
            self.wake()

    def post(self, call: Callable[..., object], *args: object) -> None:
        """Have the client's thread do it."""
        self.posts.append((call, args))
        if self.closed:
            self._refuse_posts()
        else:
            self.wake()

    def wake(self) -> None:
        """Have the thread look around; it is started if there is none."""
        self.sleeping = False
        if self.thread is None:
            self._start()
            return
        with self.lock:
            if self._wake_fds is not None:  # else it has ended
                try:
                    os.write(self._wake_fds[1], b"\0")
                except BlockingIOError:
                    pass  # full: it will wake up

    def _start(self) -> None:
        with self.lock:
            if self.thread is not None or self.closed:
                return
            if self._wake_fds is None:
                fds = os.pipe()
                self._wake_fds = fds
                for fd in fds:
                    os.set_blocking(fd, False)
            thread = threading.Thread(target=self._run, name="rationd", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self.sleeping = True
                log.error("no thread could be started, what is counted waits: %s", error)
                return
            self.thread = thread

    def ask(self, query: Query[T]) -> Future[T]:
        """Ask the daemon."""
        future: Future[T] = Future()
        self.post(self._ask, query, future)
        return future

    def operate(self, operation: Operation) -> None:
        """Have an operation done."""
        self.post(self._operate, operation)

    def flush(self, durable: bool) -> Future[None]:
        """Done when what was added before is applied, or durable."""
        future: Future[None] = Future()
        self.post(self._flush, future, durable)
        return future

    def wait(self, future: Future[T], timeout: float | None, item: str | None = None) -> T:
        """The future's result; who waits in vain gets Unreachable or TimedOut, and the future is cancelled."""
        if threading.current_thread() is self.thread:
            raise RuntimeError("the client's own thread, which calls on_loss, can't wait for an answer")
        try:
            return future.result(timeout)
        except FutureTimeout:
            if not future.cancel():
                return future.result()  # it came at this very moment
            raise self.late(item) from None
        except CancelledError:
            raise self.late(item) from None
        except BaseException:
            future.cancel()  # nobody waits any more: KeyboardInterrupt, or the failure itself
            raise

    def late(self, item: str | None = None) -> RationError:
        """The error of who has waited in vain."""
        if self.link.state is not State.UP:
            return Unreachable(self.link.text, item)
        return TimedOut("the answer did not come in time", item)

    def close(self, timeout: float) -> int:
        """Deliver what is left, end the session, stop the thread: how much could not be delivered."""
        future = self.begin_close(timeout)
        return 0 if future is None else self.finish_close(future, timeout)

    def begin_close(self, timeout: float) -> Future[int] | None:
        """Start with that. None: there is nothing to do."""
        if threading.current_thread() is self.thread:
            raise RuntimeError("on_loss can't close the client that calls it")
        with self.lock:
            if self.closed or self.closing is not None:
                return self.closing
            if self.thread is None and not self.dirty and not self.posts:
                self.closed = True
                self._close_pipe()
                return None
            self.closing = Future()
        self.post(self._begin_close, time.monotonic() + timeout)
        return self.closing

    def finish_close(self, future: Future[int], timeout: float) -> int:
        """And wait for it."""
        try:
            undelivered = future.result(timeout + 2 * END_TIME)
        except FutureTimeout:
            undelivered = self.n_undelivered
        if self.thread is not None:
            self.thread.join(END_TIME)
        return undelivered

    def forget(self) -> None:
        """In the child of a fork: begin anew, with nothing."""
        self.link.begin()
        self.outbox.begin()
        self.operations.begin()
        self.questions.begin()
        for counter in (*self.counters.values(), *self.gauges.values()):
            counter._forget()
        self._close_pipe()
        closed = self.closed
        self._begin()
        self.closed = closed
        for lease in self.leases:
            lease._begin()

    def _close_pipe(self) -> None:
        """Under the lock, since others write to it; or alone."""
        fds, self._wake_fds = self._wake_fds, None
        for fd in fds or ():
            os.close(fd)

    # ---- the thread: its loop ----

    def _run(self) -> None:
        with self.lock:
            # Who started it may have been interrupted before it could note that: the first one it is.
            if self.thread is None:
                self.thread = threading.current_thread()
            if self.thread is not threading.current_thread():
                return
        assert self._wake_fds is not None
        wake = self._wake_fds[0]
        events = 0
        while not self.closed:
            try:
                self._step(time.monotonic(), events)
            except Exception as error:
                log.exception("a fault of this library; the connection is begun anew")
                self.link.fail(time.monotonic(), f"a fault of this library: {error}")
            events = 0 if self.closed else self._sleep(wake)
        self._refuse_posts()
        self._drop_dirty()
        with self.lock:
            self._close_pipe()

    def _step(self, now: float, events: int) -> None:
        while self.posts:
            call, args = self.posts.popleft()
            call(*args)
        if self.dirty and self.collect_at is None:
            self.collect_at = now + min(self.options.send_interval, COLLECT_TIME)
            if self.send_at is None:
                # What is due already, and has waited for the daemon, waits no longer for what is new.
                self.send_at = now if self.outbox.queue else now + self.options.send_interval
        if self.collect_at is not None and now >= self.collect_at:
            self._collect()
        self.outbox.waits = self.send_at is not None and now < self.send_at
        if not self.outbox.waits:
            self.send_at = None
        self._step_leases(now)
        self.link.step(now, events)
        self._progress()
        if self.ending:
            self._step_close(now)
        self.link.send(now)

    def _sleep(self, wake: int) -> int:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        sock = self.link.sock
        fd = -1
        if sock is not None:
            fd = sock.fileno()
            poll.register(fd, select.POLLIN | (select.POLLOUT if self.link.wants_to_write() else 0))
        timeout = self._timeout(time.monotonic())
        self.sleeping = self.collect_at is None
        if self.posts or self.dirty and self.collect_at is None:
            timeout = 0.0
        ready = dict(poll.poll(None if timeout is None else max(0.0, timeout * 1000)))
        self.sleeping = False
        if wake in ready:
            try:
                os.read(wake, 4096)
            except BlockingIOError:
                pass
        return ready.get(fd, 0) if fd >= 0 else 0

    def _timeout(self, now: float) -> float | None:
        times = [
            self.collect_at,
            self.send_at,
            self.link.next_time(),
            *(lease.next_time() for lease in self.leases),
        ]
        if self.ending:
            times += [self.close_by, self.end_by, now + BUSY_TIME]
        due = [at for at in times if at is not None]
        return max(0.0, min(due) - now) if due else None

    # ---- the thread: growth ----

    def _send_now(self) -> None:
        self._collect()
        self.send_at = None

    def _collect(self) -> None:
        self.collect_at = None
        add = self.outbox.add
        while self.dirty:
            counter = self.dirty.popleft()
            growth = counter._take()
            if growth:
                add(counter, growth)

    def _lose(self, counter: Counter, code: int, amount: int, text: str) -> None:
        name = Code.of(code).name
        if self.options.on_loss is None:
            if not self.giving_up:
                log.warning("%s: %d not counted: %s (%s)", counter.path, amount, text, name)
            return
        try:
            self.options.on_loss(Loss(code, counter.path, amount, text))
        except Exception:
            log.exception("on_loss has failed")

    def _flush(self, future: Future[None], durable: bool) -> None:
        self._send_now()
        self.link.hurry(time.monotonic())
        self.flushes.append(Flushing(future, self.outbox.given, durable))

    def _progress(self) -> None:
        """See whether somebody has waited for what there is now."""
        for flushing in list(self.flushes):
            flushing.target = max(flushing.target, self.outbox.given_back)
            if flushing.future.done():
                self.flushes.remove(flushing)
            elif self.outbox.settled() >= flushing.target and self._is_counted():
                if not flushing.durable:
                    resolve(flushing.future, None)
                    self.flushes.remove(flushing)
                elif not flushing.asked and self.link.state is State.UP:
                    self._ask_durable(flushing)

    def _is_counted(self) -> bool:
        """What was answered is: without a connection the daemon may be gone, with what was not durable."""
        return self.link.state is State.UP or not self.outbox.kept

    def _ask_durable(self, flushing: Flushing) -> None:
        def take(reply: pb.Reply) -> bool:
            if flushing in self.flushes:
                self.flushes.remove(flushing)
            if reply.WhichOneof("body") == "error":
                reject(flushing.future, error_of(reply.error.code, reply.error.text))
            elif not reply.flushed.durable:
                reject(flushing.future, RationError(Code.FAILED_PRECONDITION, "the daemon keeps no file"))
            else:
                # All that was put on the connection before it is durable, whether a Durable has said so already or not.
                self.outbox.drop_through(min(batch, self.outbox.unapplied - 1))
                self.operations.durable(operation)
                resolve(flushing.future, None)
            return True

        batch, operation = self.link.to_send - 1, self.operations.next_number - 1
        flushing.asked = True
        self.link.put(pb.Request(flush=pb.Flush(durable=True)), take)

    def _welcomed(self, knows: Knows) -> None:
        for flushing in self.flushes:
            flushing.asked = False
        for lease in self.leases:
            lease.session(knows)

    # ---- the thread: everything else ----

    def _ask(self, query: Query[T], future: Future[T]) -> None:
        self.questions.add(query, future)
        self.link.hurry(time.monotonic())

    def _operate(self, operation: Operation) -> None:
        self.operations.add(operation)
        self.link.hurry(time.monotonic())

    def uncharge_quietly(self, path: str, amount: int, detached: bool = False) -> None:
        """Give back what nobody waits for; it may not be a gauge."""
        operation = Operation(
            pb.Uncharge(path=path, amount=amount, detached=detached), lambda reply, error: None, path
        )
        operation.waits_for_daemon = True
        operation.dies_with_session = not detached
        self.operations.add(operation)

    def add_lease(self, lease: Lease) -> None:
        """A new one."""
        self.lease_number += 1
        lease._number = self.lease_number
        self.leases.append(lease)
        self.link.hurry(time.monotonic())

    def step_lease(self, lease: Lease) -> None:
        """Look after it, at the next step, which comes at once."""

    def _step_leases(self, now: float) -> None:
        for lease in list(self.leases):
            if lease.step(now):
                self.leases.remove(lease)

    # ---- the thread: the end ----

    def _begin_close(self, by: float) -> None:
        self.ending = True
        self.close_by = by
        self._send_now()
        self.link.hurry(time.monotonic())
        for lease in self.leases:
            if lease._closing is None:
                lease._closing = Future()
        flushed: Future[None] = Future()
        self.flushes.append(Flushing(flushed, self.outbox.given, durable=False))

    def _step_close(self, now: float) -> None:
        if self.end_by is not None:
            if now >= self.end_by or self.link.state is not State.UP:
                self._end()
            return
        self._send_now()
        if self.operations.drop_waiting(ClientClosed()):
            # A session whose charges wait can't be ended; its connection can.
            self.link.fail(now, "the client is closing")
            self.link.retry_at = now
        delivered = self.outbox.settled() >= self.outbox.given and self.operations.idle() and not self.leases
        durable = self.not_durable or not self.outbox.kept and self.operations.settled()
        if now >= self.close_by:
            self._end()
        elif delivered and not durable and self.link.state is State.UP and not self.flushes:
            future: Future[None] = Future()
            self.flushes.append(Flushing(future, self.outbox.given, durable=True))
            future.add_done_callback(self._last_flush)
        elif delivered and durable:
            self._say_end(now)

    def _last_flush(self, future: Future[None]) -> None:
        if not future.cancelled() and future.exception() is not None:
            self.not_durable = True  # it can't be, but it is applied

    def _say_end(self, now: float) -> None:
        if self.link.state is not State.UP:
            # There is a session if it was ever welcomed; it is worth a moment to end it.
            self.linger_by = self.linger_by or now + END_TIME
            if not self.link.incarnation or now >= self.linger_by:
                self._end()
            return

        def take(reply: pb.Reply) -> bool:
            self._end()
            return True

        self.end_by = min(now + END_TIME, max(self.close_by, now))
        self.link.put(pb.Request(end=pb.End()), take)

    def _end(self) -> None:
        if self.closed:
            return
        error = ClientClosed()
        self.operations.end_all(error)
        self.questions.end_all(error)
        for lease in self.leases:
            lease.end(error)
        self.giving_up = True
        self.n_undelivered = self.outbox.give_up("not acknowledged by the daemon when the client was closed")
        self.giving_up = False
        for flushing in self.flushes:
            reject(flushing.future, error)
        self.flushes.clear()
        self.closed = True
        self.link.close()
        if self.n_undelivered and self.options.on_loss is None:
            log.warning(
                "%d could not be delivered to %s: %s",
                self.n_undelivered,
                self.options.address.url,
                self.link.text or "it does not answer",
            )
        if self.closing is not None:
            resolve(self.closing, self.n_undelivered)

    def _refuse_posts(self) -> None:
        error = ClientClosed()
        while self.posts:
            try:
                _, args = self.posts.popleft()
            except IndexError:
                break
            for arg in args:
                if isinstance(arg, Future):
                    reject(arg, error)
                elif isinstance(arg, Operation):
                    arg.end(None, error)

    def _drop_dirty(self) -> None:
        while self.dirty:
            try:
                counter = self.dirty.popleft()
            except IndexError:
                break
            growth = counter._take()
            if growth and not self.said_late:
                self.said_late = self.options.on_loss is None  # in the log once is enough
                self._lose(counter, Code.FAILED_PRECONDITION, growth, "the client is closed")
