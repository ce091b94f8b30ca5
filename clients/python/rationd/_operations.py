"""Operations: charges, their return, and leases, on their way over the connection of the session; each is
done once.

    queued --put--> numbered, on the connection --answer--> answered --durable--> gone
      ^______________the connection broke______|________________|

An operation keeps its number until the daemon has said that it does not know it. Where the daemon keeps a
file, an answered one is kept until it is durable, and told again with what is known of it to a daemon that
has lost it.

Threads: the client's thread alone.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Union

from . import ration_pb2 as pb
from ._check import check_size
from .errors import Code, RationError, SessionLost, Unreachable, error_of

Body = Union[pb.Charge, pb.Uncharge, pb.Lease, pb.LeaseRenew, pb.LeaseReturn]

KINDS: dict[type, tuple[str, str]] = {
    pb.Charge: ("charge", "charged"),
    pb.Uncharge: ("uncharge", "uncharged"),
    pb.Lease: ("lease", "leased"),
    pb.LeaseRenew: ("lease_renew", "leased"),
    pb.LeaseReturn: ("lease_return", "lease_returned"),
}
MAX_TRIES = 5  # for a number that the daemon does not take
OVERHEAD = 600  # bytes of an operation, beside its message


class Knows(enum.Enum):
    """What a daemon still knows of the session of a client that comes back."""

    HANDLES = 0  # all (resumed)
    NUMBERS = 1  # what is in its file (restored)
    FORGOTTEN = 2  # nothing, and it is the same daemon: it was away for longer than the session's lifetime
    NOTHING = 3  # nothing, and it is another daemon


class Operation:
    """One of them. `take` is called once, with the reply or an error, when it is out of the client's hands."""

    __slots__ = (
        "body",
        "kind",
        "answer",
        "take",
        "item",
        "waits_for_daemon",
        "dies_with_session",
        "withdrawn",
        "room_until",
        "era",
        "number",
        "id",
        "sent",
        "sent_at",
        "known",
        "tries",
        "size",
    )

    def __init__(
        self, body: Body, take: Callable[[pb.Reply | None, RationError | None], None], item: str | None = None
    ) -> None:
        check_size(body, item)
        self.body = body
        self.kind, self.answer = KINDS[type(body)]
        self.take = take
        self.item = item
        self.waits_for_daemon = False  # else it ends if nobody listens before it was ever sent
        self.dies_with_session = False  # else it is sent to a daemon that has forgotten the session, too
        self.withdrawn = False  # nobody wants it any more, if it was never sent
        self.room_until = 0.0  # of a charge that waits for room
        self.era: int | None = None  # what it is about was charged in this one, see Operations.era
        self.number = 0
        self.id = 0  # of its request on this connection; 0: it is not on it
        self.sent = False  # the daemon may have done it
        self.sent_at = 0.0  # first under this number
        self.known: pb.Known | None = None  # it was answered
        self.tries = 0
        self.size = OVERHEAD + body.ByteSize()

    def waits_for_room(self) -> bool:
        """Its answer may take long."""
        return isinstance(self.body, pb.Charge) and self.body.wait_ms > 0

    def end(self, reply: pb.Reply | None, error: RationError | None) -> None:
        """Tell its owner, once."""
        take, self.take = self.take, _nobody
        take(reply, error)


def _nobody(reply: pb.Reply | None, error: RationError | None) -> None:
    pass


class Operations:
    """The queue. `kept` has those with numbers, lowest first; `queued` those without; `to_put` what is to go
    on this connection.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.begin()

    def begin(self) -> None:
        """As at first: nothing."""
        self.kept: deque[Operation] = deque()
        self.queued: deque[Operation] = deque()
        self.to_put: deque[Operation] = deque()
        self.next_number = 1
        self.kept_bytes = 0
        self.max_kept = 1
        self.keeps = False
        self.has_dropped = False  # not all that was answered in this session is in `kept`
        self.era = 0  # how often what the session held was lost
        self.durable_number = 0  # up to here the daemon has said so, of some before it has answered them
        self.n_due = 0  # on the connection, and should be answered without delay

    def add(self, operation: Operation) -> None:
        """Append, unless there is nothing left that it could be done to."""
        if operation.era not in (None, self.era):
            operation.end(None, SessionLost(item=operation.item))
        else:
            self.queued.append(operation)

    def idle(self) -> bool:
        """All are answered."""
        return not self.queued and all(operation.known for operation in self.kept)

    def drop_waiting(self, error: RationError) -> bool:
        """If nothing but charges that wait for room is unanswered: end those. The connection must be ended, too."""
        waiting = [operation for operation in self.kept if operation.known is None]
        if self.queued or not waiting or not all(operation.waits_for_room() for operation in waiting):
            return False
        self.kept = deque(operation for operation in self.kept if operation.known)
        self.kept_bytes = sum(operation.size for operation in self.kept)
        for operation in waiting:
            operation.end(None, error)
        return True

    def settled(self) -> bool:
        """None is needed any more."""
        return not self.queued and not self.kept

    def oldest(self) -> int:
        """The lowest number that may still be sent."""
        return self.kept[0].number if self.kept else self.next_number

    def _oldest_unanswered(self) -> int:
        return next(
            (operation.number for operation in self.kept if operation.known is None), self.next_number
        )

    # ---- the connection ----

    def welcome(self, welcome: pb.Welcome, known: Knows) -> bool:
        """Begin on a new connection. False: last_operation is not of our session."""
        last = welcome.last_operation
        if last >= self.next_number:
            return False
        session_gone = known is Knows.FORGOTTEN or known is Knows.NOTHING and self.has_dropped
        self.keeps = welcome.keeps
        self.durable_number = welcome.durable_operation
        self.max_kept = max(1, welcome.limits.max_operations_kept)
        self.n_due = 0
        before, self.kept = self.kept, deque()
        lost: list[Operation] = []
        self.to_put.clear()
        number = last
        for operation in before:
            operation.id = 0
            if operation.known and known is Knows.HANDLES:
                if welcome.keeps and operation.number > welcome.durable_operation:
                    self.kept.append(operation)
                else:
                    self.has_dropped = True
            elif operation.known and (known is Knows.FORGOTTEN or operation.number <= last):
                self.has_dropped = True
            elif operation.dies_with_session and session_gone:
                lost.append(operation)
            else:
                if operation.number > last:
                    number += 1
                    operation.number = number
                self.kept.append(operation)
                self.to_put.append(operation)
        self.kept_bytes = sum(operation.size for operation in self.kept)
        self.next_number = number + 1
        if session_gone:
            self.has_dropped = False
            self.era += 1
            lost += [operation for operation in self.queued if operation.dies_with_session]
            self.queued = deque(operation for operation in self.queued if not operation.dies_with_session)
        for operation in lost:
            operation.end(None, SessionLost(item=operation.item))
        return True

    def next_to_put(self, now: float) -> tuple[Operation, pb.Request] | None:
        """What is to be put on the connection now; put() must follow."""
        if self.to_put:
            operation = self.to_put.popleft()
        else:
            while self.queued and self.queued[0].withdrawn:
                self.queued.popleft()
            if not self.queued or not self._may_number():
                return None
            operation = self.queued.popleft()
            operation.number = self.next_number
            self.next_number += 1
            self.kept.append(operation)
            self.kept_bytes += operation.size
        body = operation.body
        body.number = operation.number
        if isinstance(body, pb.Charge) and operation.room_until:
            body.wait_ms = (
                max(1, round((operation.room_until - now) * 1000)) if operation.room_until > now else 0
            )
        request = pb.Request()
        getattr(request, operation.kind).CopyFrom(body)
        if operation.known is not None:
            request.known.CopyFrom(operation.known)
        if not operation.sent:
            operation.sent, operation.sent_at = True, now
        if not operation.waits_for_room():
            self.n_due += 1
        return operation, request

    def _may_number(self) -> bool:
        """A number too far above one that has no answer must wait: the answer would not be kept. So must what
        would take too much memory.
        """
        return (
            self.next_number - self._oldest_unanswered() < self.max_kept and self.kept_bytes < self.max_bytes
        )

    def answered(self, operation: Operation, reply: pb.Reply) -> str:
        """Its answer has come. A text: the connection is to be begun anew, because of that."""
        operation.id = 0
        if not operation.waits_for_room():
            self.n_due -= 1
        kind = reply.WhichOneof("body")
        if kind == "error":
            error = reply.error
            if error.operation == 0 and error.code != Code.UNIMPLEMENTED:
                return self._not_taken(operation, error)
            known = pb.Known(done=False)
            self._settle(operation, known)
            operation.end(None, error_of(error.code, error.text, operation.item))
        elif kind != operation.answer:
            return "a reply that does not fit its request"
        else:
            self._settle(operation, _known(reply))
            operation.end(reply, None)
        return ""

    def _not_taken(self, operation: Operation, error: pb.Error) -> str:
        """Its number was not used up: numbers behind it are wrong now, which a new connection puts right."""
        operation.tries += 1
        if error.code != Code.FAILED_PRECONDITION or operation.tries >= MAX_TRIES:
            self.kept.remove(operation)
            self.kept_bytes -= operation.size
            operation.end(None, error_of(error.code, error.text, operation.item))
        return f"the daemon did not take an operation's number: {error.text}"

    def _settle(self, operation: Operation, known: pb.Known) -> None:
        if operation.known is not None:
            return  # told again
        operation.known = known
        if not self.keeps or operation.number <= self.durable_number:
            self.has_dropped = True
            self.kept.remove(operation)
            self.kept_bytes -= operation.size

    def durable(self, number: int) -> None:
        """Answers up to this number will be known after any crash."""
        self.durable_number = number
        while self.kept and self.kept[0].known and self.kept[0].number <= number:
            self.has_dropped = True
            self.kept_bytes -= self.kept.popleft().size
        if any(operation.known and operation.number <= number for operation in self.kept):
            self.has_dropped = True
            self.kept = deque(
                operation for operation in self.kept if not (operation.known and operation.number <= number)
            )
            self.kept_bytes = sum(operation.size for operation in self.kept)

    # ---- ends ----

    def unreachable(self, text: str) -> None:
        """Nobody listens: what was never sent ends, unless it waits for the daemon."""
        ended = [operation for operation in self.queued if not operation.waits_for_daemon]
        self.queued = deque(operation for operation in self.queued if operation.waits_for_daemon)
        for operation in ended:
            operation.end(None, Unreachable(text, operation.item))

    def end_all(self, error: RationError) -> None:
        """The client closes."""
        ended = [*self.kept, *self.queued]
        self.begin()
        for operation in ended:
            operation.end(None, error)


def _known(reply: pb.Reply) -> pb.Known:
    """What came of an operation, for a daemon that does not know."""
    kind = reply.WhichOneof("body")
    if kind == "charged":
        return pb.Known(done=reply.charged.granted)
    if kind == "leased":
        return pb.Known(done=True, granted=reply.leased.granted)
    return pb.Known(done=True)
