"""The connection over which a client counts, as a state machine that never blocks.

    DOWN --dial--> CONNECTING --writable--> GREETING --Welcome--> UP
      ^_______________________any failure___________________________|

A failure closes the connection and sets the time of the next attempt: 50 ms after the first, doubling up to
2 s, each a random part shorter so that clients of a daemon that returns do not all come at once. What was sent and is not known to be
applied (or durable) is sent again on the next connection, as PROTOCOL.md says.

Threads: the client's thread alone.
"""

from __future__ import annotations

import enum
import errno
import os
import random
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from . import ration_pb2 as pb
from ._address import Address
from ._interns import Interns
from ._operations import Knows, Operations
from ._outbox import Batch, Outbox
from ._version import VERSION
from ._wire import FrameReader, Malformed, frame
from .errors import Code

if TYPE_CHECKING:
    from ._asking import Questions

BACKOFF_MIN = 0.05
BACKOFF_MAX = 2.0
CONNECT_TIME = 5.0  # for connect, and again for the Welcome
ANSWER_TIME = 10.0  # without a sign of life while an answer is due: the connection is given up
IDLE_TIME = 15.0  # of silence on TCP, then a Ping
MAX_PENDING = 128 * 1024  # bytes of output that wait for the socket
MAX_FAULTS = 5  # times in a row that the daemon says it is our fault; then the oldest batch is given up
READ_BYTES = 256 * 1024
MIN_FRAME = 1024  # less than this is no limit we can work with
ENTRY_BYTES = 16  # of a handle and a delta at their longest
PROTOCOL_VERSION = 1

_NOT_OURS = {Code.UNAVAILABLE, Code.ABORTED, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED}


class State(enum.Enum):
    """See above."""

    DOWN = 0
    CONNECTING = 1
    GREETING = 2
    UP = 3


class Link:
    """See above. What it carries belongs to the outbox, the operations and the questions."""

    def __init__(
        self,
        address: Address,
        lifetime_ms: int,
        max_bytes: int,
        outbox: Outbox,
        operations: Operations,
        questions: Questions,
        on_session: Callable[[Knows], None],
    ) -> None:
        self.address = address
        self.lifetime_ms = lifetime_ms
        self.max_bytes = max_bytes
        self.outbox, self.operations, self.questions = outbox, operations, questions
        self.on_session = on_session  # after each Welcome: what the daemon knows
        self.sock: socket.socket | None = None
        self.begin()

    def begin(self) -> None:
        """As at first: another session, no connection."""
        self.state = State.DOWN
        self.leave_session()
        self.random = random.Random(self.session)
        self.interns = Interns()
        self.incarnation = b""
        self.limits = pb.Limits()
        self.keeps = False
        self.text = "not connected yet"
        self.retry_at = 0.0
        self.backoff = 0.0
        self.expires_at = 0.0
        self.heard_at = 0.0
        self.faults = 0
        self.fault_batch = 0
        self.next_id = 1
        self.ended = False
        self._reset()

    def leave_session(self) -> None:
        """Another one, from the next connection on."""
        self.session = os.urandom(16)
        self.begun = False  # it was welcomed

    def _reset(self) -> None:
        if self.sock is not None:
            self.sock.close()
        self.sock = None
        self.reader = FrameReader()
        self.out = bytearray()
        self.candidates: list[Any] = []
        self.waiting: dict[int, Callable[[pb.Reply], bool]] = {}  # by id; true: that was all of the answer
        self.to_send = 0  # the number of the first batch that is not on this connection
        self.ping_id = 0

    # ---- ends ----

    def fail(self, now: float, text: str) -> None:
        """Give the connection up."""
        self.text = text
        self.state = State.DOWN
        self._reset()
        self.backoff = min(BACKOFF_MAX, self.backoff * 2) if self.backoff else BACKOFF_MIN
        self.retry_at = now + self.random.uniform(self.backoff / 4, self.backoff)
        self.questions.disconnected()

    def _unreachable(self, now: float, text: str) -> None:
        self.fail(now, text)
        self.operations.unreachable(text)
        self.questions.unreachable(text)

    def _fault(self, now: float, code: int, text: str) -> None:
        """The daemon says that it is our fault. If it says so again and again of the same batch, that is
        given up.
        """
        number = self.outbox.unapplied
        self.faults = self.faults + 1 if number == self.fault_batch else 1
        self.fault_batch = number
        batch = self.outbox.find(number)
        if batch is not None and batch.counters and self.faults >= MAX_FAULTS:
            for counter, delta in zip(batch.counters, batch.deltas):
                self.outbox.lose(counter, code, delta, text)
            self.outbox.empty(batch)
            self.faults = 0
        self.fail(now, f"the daemon ended the connection: {Code.of(code).name}: {text}")

    def close(self) -> None:
        """No more of it."""
        self.state = State.DOWN
        self.ended = True
        self._reset()

    # ---- beginnings ----

    def hurry(self, now: float) -> None:
        """Somebody waits: don't."""
        if self.state is State.DOWN and self.backoff > BACKOFF_MIN:
            self.backoff = 0.0
            self.retry_at = now

    def _dial(self, now: float) -> None:
        try:
            self.candidates = list(self.address.candidates())
        except OSError as error:
            self._unreachable(now, f"{self.address.url}: {error.strerror or error}")
            return
        self._connect_next(now, "no address")

    def _connect_next(self, now: float, before: str) -> None:
        while self.candidates:
            family, address = self.candidates.pop(0)
            try:
                if self.sock is not None:
                    self.sock.close()
                self.sock = socket.socket(family, socket.SOCK_STREAM)
                self.sock.setblocking(False)
                if family != socket.AF_UNIX:
                    self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                result = self.sock.connect_ex(address)
            except OSError as error:
                before = error.strerror or str(error)
                continue
            if result in (0, errno.EINPROGRESS):
                self.state = State.CONNECTING
                self.expires_at = now + CONNECT_TIME
                if result == 0:
                    self._connected(now)
                return
            before = os.strerror(result)
        self._unreachable(now, f"{self.address.url}: {before}")

    def _connected(self, now: float) -> None:
        assert self.sock is not None
        result = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if result:
            self._connect_next(now, os.strerror(result))
            return
        self.state = State.GREETING
        self.text = "the daemon does not answer"
        self.expires_at = now + CONNECT_TIME
        hello = pb.Hello(
            version=PROTOCOL_VERSION,
            session=self.session,
            lifetime_ms=self.lifetime_ms,
            next_batch=self.outbox.oldest(),
            agent=f"rationd-python/{VERSION}",
            next_operation=self.operations.oldest(),
            incarnation=self.incarnation,
        )
        self.put(pb.Request(hello=hello), lambda reply: self._greeted(reply))

    def _greeted(self, reply: pb.Reply) -> bool:
        welcome = reply.welcome
        if reply.WhichOneof("body") == "error":
            self.fail(self.now, f"the daemon refuses: {Code.of(reply.error.code).name}: {reply.error.text}")
        elif reply.WhichOneof("body") != "welcome":
            self.fail(self.now, "the daemon did not begin with a welcome")
        elif welcome.version != PROTOCOL_VERSION:
            self.fail(self.now, f"the daemon speaks version {welcome.version} of the protocol")
        elif welcome.limits.max_items == 0 or welcome.limits.max_frame < MIN_FRAME:
            self.fail(self.now, "the daemon's limits leave no room for a request")
        elif self.begun and self._knows(welcome) is Knows.FORGOTTEN:
            # Its state file may still have operations of the session, under numbers that ours would be given again.
            self.leave_session()
            self.fail(self.now, "the daemon has forgotten the session")
        elif welcome.last_batch >= self.outbox.next_number or not self._welcomed(welcome):
            self.leave_session()
            self.fail(self.now, "the daemon knows the session by numbers that were never used")
        return True

    def _knows(self, welcome: pb.Welcome) -> Knows:
        same = welcome.incarnation == self.incarnation
        if welcome.resumed and same:
            return Knows.HANDLES
        if welcome.resumed or welcome.restored:
            # Resumed, by a daemon whose Welcome that said restored was lost: nothing was sent to it yet.
            return Knows.NUMBERS
        return Knows.FORGOTTEN if same else Knows.NOTHING

    def _welcomed(self, welcome: pb.Welcome) -> bool:
        knows = self._knows(welcome)
        if not self.operations.welcome(welcome, knows):
            return False
        self.limits, self.incarnation, self.keeps = welcome.limits, welcome.incarnation, welcome.keeps
        self._resume_batches(welcome, knows)
        self.interns.begin(resumed=knows is Knows.HANDLES)
        self.begun = True
        self.state = State.UP
        self.text = ""
        self.heard_at = self.now
        self.on_session(knows)
        return True

    def _resume_batches(self, welcome: pb.Welcome, knows: Knows) -> None:
        outbox = self.outbox
        if knows is Knows.HANDLES:
            for batch in outbox.kept:
                if not batch.applied and batch.number <= welcome.last_batch:
                    outbox.settle(batch, ())
            outbox.drop_through(
                min(welcome.durable_batch, welcome.last_batch) if welcome.keeps else welcome.last_batch
            )
        else:
            outbox.drop_through(welcome.last_batch)
            outbox.send_again(counted=knows is Knows.FORGOTTEN)
        outbox.fit(self._max_entries())
        self.to_send = outbox.unapplied

    def _max_entries(self) -> int:
        return int(min(self.limits.max_items, (self.limits.max_frame - 64) // ENTRY_BYTES))

    # ---- sending ----

    def put(self, request: pb.Request, take: Callable[[pb.Reply], bool]) -> int:
        """Append a request; take gets the replies to it, on this connection."""
        request.id = self.next_id
        self.next_id += 1
        self.out += frame(request.SerializeToString())
        self.waiting[request.id] = take
        return int(request.id)

    def _fill(self, now: float) -> None:
        was_due = self._answer_is_due()
        while len(self.out) < MAX_PENDING and self._put_operation(now):
            pass
        self.questions.put(self, now)
        while len(self.out) < MAX_PENDING and self._put_batch(now):
            pass
        if not was_due and self._answer_is_due():
            self.heard_at = now

    def _put_operation(self, now: float) -> bool:
        found = self.operations.next_to_put(now)
        if found is None:
            return False
        operation, request = found

        def take(reply: pb.Reply) -> bool:
            wrong = self.operations.answered(operation, reply)
            self.backoff = 0.0
            if wrong:
                self.fail(self.now, wrong)
            return True

        operation.id = self.put(request, take)
        return True

    def _put_batch(self, now: float) -> bool:
        batch = self.outbox.find(self.to_send)
        if batch is None and not self.outbox.waits and self.outbox.kept_bytes < self.max_bytes:
            batch = self.outbox.cut(self._max_entries(), self.limits.max_handles, now)
        if batch is None:
            return False
        cut = batch
        for request, take in self.interns.tell(batch, self.limits, self._refused):
            self.put(request, take)
        add = pb.Add(
            batch=batch.number, handles=[counter._handle for counter in batch.counters], deltas=batch.deltas
        )
        self.put(pb.Request(add=add), lambda reply: self._applied(cut, reply))
        self.to_send = batch.number + 1
        return True

    def _refused(self, counter: Any, code: int, text: str) -> None:
        self.interns.refused(counter, code, text, self.now)

    def _answer_is_due(self) -> bool:
        outbox = self.outbox
        return bool(
            self.ping_id
            or self.operations.n_due > 0
            or self.questions.n_due
            or outbox.unapplied < self.to_send
        )

    def _ping_if_idle(self, now: float) -> None:
        if self.address.path or self._answer_is_due() or now - self.heard_at < IDLE_TIME:
            return
        self.heard_at = now
        self.ping_id = self.put(pb.Request(ping=pb.Ping()), self._ponged)

    def _ponged(self, reply: pb.Reply) -> bool:
        self.ping_id = 0
        return True

    # ---- answers ----

    def _applied(self, batch: Batch, reply: pb.Reply) -> bool:
        if reply.WhichOneof("body") == "error":
            if reply.error.code in _NOT_OURS:
                self.fail(self.now, f"the daemon refuses: {reply.error.text}")
            else:
                self._fault(self.now, reply.error.code, reply.error.text)
            return True
        if (
            reply.WhichOneof("body") != "applied"
            or reply.applied.batch != batch.number
            or batch.number != self.outbox.unapplied
        ):
            self.fail(self.now, "an acknowledgement of a batch that was not sent")
            return True
        wrong = [error for error in reply.applied.errors if error.index < len(batch.counters)]
        entries = [(batch.counters[error.index], batch.deltas[error.index], error) for error in wrong]
        self.outbox.settle(batch, [error.index for error in wrong])
        if not self.keeps:
            self.outbox.drop_through(batch.number)
        for counter, delta, error in entries:
            self._not_counted(counter, batch.number, delta, error)
        self.backoff = 0.0
        self.faults = 0
        return True

    def _not_counted(self, counter: Any, number: int, delta: int, error: pb.ItemError) -> None:
        if counter._refused_until > self.now:
            code, text = counter._refused
            self.outbox.lose(counter, code, delta, text)
        elif error.code == Code.NOT_FOUND and self.interns.tell_again(counter, number, self.now):
            self.outbox.give_back(counter, delta)
        else:
            self.outbox.lose(counter, error.code, delta, error.text)

    def _take(self, reply: pb.Reply) -> None:
        kind = reply.WhichOneof("body")
        if kind == "goodbye":
            self._goodbye(reply.goodbye)
        elif kind == "durable":
            if self.state is State.UP:
                self.outbox.drop_through(min(reply.durable.batch, self.outbox.unapplied - 1))
                self.operations.durable(reply.durable.operation)
        elif reply.id in self.waiting and kind is not None:
            if self.waiting[reply.id](reply):
                self.waiting.pop(reply.id, None)

    def _goodbye(self, goodbye: pb.Goodbye) -> None:
        if goodbye.code == Code.ABORTED:
            # Somebody else has the session, a copy of this process perhaps: to take it back would go on for ever.
            self.leave_session()
        if goodbye.code in _NOT_OURS or self.state is not State.UP:
            self.fail(
                self.now, f"the daemon ended the connection: {Code.of(goodbye.code).name}: {goodbye.text}"
            )
        else:
            self._fault(self.now, goodbye.code, goodbye.text)

    # ---- a step ----

    def step(self, now: float, events: int) -> None:
        """Do what can be done now. events: not 0 if the socket can be read from or written to."""
        self.now = now
        if self.ended:
            return
        if self.state is State.DOWN and now >= self.retry_at:
            self._dial(now)
        elif self.state is State.CONNECTING and events:
            self._connected(now)
        elif self.state in (State.GREETING, State.UP) and events:
            self._receive(now)
        self._check_time(now)
        if self.state is State.UP:
            self._ping_if_idle(now)
            self._fill(now)
        self.send(now)

    def _receive(self, now: float) -> None:
        assert self.sock is not None
        failure = ""
        try:
            data = self.sock.recv(READ_BYTES)
            failure = "" if data else "the daemon has closed the connection"
        except BlockingIOError:
            return
        except OSError as error:
            data, failure = b"", error.strerror or str(error)
        reader, sock = self.reader, self.sock
        reader.feed(data)
        try:
            while self.sock is sock and (message := reader.take()) is not None:
                self.heard_at = now
                self._take(pb.Reply.FromString(message))
        except Malformed as error:
            failure = failure or str(error)
        except DecodeError:
            failure = failure or "a malformed reply"
        if failure and self.sock is sock:
            self.fail(now, failure)

    def send(self, now: float) -> None:
        """Write what the socket takes."""
        if self.sock is None or self.state not in (State.GREETING, State.UP):
            return
        try:
            while self.out:
                sent = self.sock.send(self.out)
                del self.out[:sent]
                if self.state is State.UP and len(self.out) < MAX_PENDING:
                    self._fill(now)
        except BlockingIOError:
            pass
        except OSError as error:
            # What the daemon said before it closed may tell why.
            self._receive(now)
            if self.state is not State.DOWN:
                self.fail(now, error.strerror or str(error))

    def _check_time(self, now: float) -> None:
        if self.state is State.CONNECTING and now >= self.expires_at:
            self._connect_next(now, os.strerror(errno.ETIMEDOUT))
        elif self.state is State.GREETING and now >= self.expires_at:
            self.fail(now, "the daemon does not answer")
        elif self.state is State.UP and self._answer_is_due() and now - self.heard_at >= ANSWER_TIME:
            self.fail(now, "the daemon does not answer any more")

    def next_time(self) -> float | None:
        """When step has something to do of itself."""
        if self.ended:
            return None
        if self.state is State.DOWN:
            return self.retry_at
        if self.state in (State.CONNECTING, State.GREETING):
            return self.expires_at
        if self._answer_is_due():
            return self.heard_at + ANSWER_TIME
        return None if self.address.path else self.heard_at + IDLE_TIME

    def wants_to_write(self) -> bool:
        """Whether the socket is to be watched for room."""
        return self.state is State.CONNECTING or bool(self.out)
