"""Paths on their way to the daemon: each is told right before the first batch that needs it.

Threads: the client's thread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import ration_pb2 as pb
from ._outbox import Batch
from .counters import Counter

REFUSED_TIME = 1.0  # a path that was refused is not tried again before
STRIKES_TIME = 1.0  # a counter that is removed so often ...
MAX_STRIKES = 3  # ... within that time is given up: no metric lets its counters go so soon
RUN_BYTES = 64 * 1024  # of paths in one Intern

Refuse = Callable[[Counter, int, str], None]


class Interns:
    """Which paths the daemon knows by which handles. A counter is known if its `_told` is `epoch`."""

    def __init__(self) -> None:
        self.epoch = 1
        self.under_way: dict[int, list[Counter]] = {}  # told, and not answered
        self.runs = 0

    def begin(self, resumed: bool) -> None:
        """On a new connection."""
        if resumed:
            for counters in self.under_way.values():
                for counter in counters:
                    counter._told = 0
        else:
            self.epoch += 1
        self.under_way.clear()

    def tell(
        self, batch: Batch, limits: pb.Limits, refuse: Refuse
    ) -> Iterator[tuple[pb.Request, Callable[[pb.Reply], bool]]]:
        """Requests that tell all paths of the batch that the daemon does not know."""
        run: list[Counter] = []
        size = 0
        untold = {counter for counter in batch.counters if counter._told != self.epoch}
        for counter in sorted(untold, key=lambda counter: counter._handle):
            length = len(counter.path) * 4 + 8
            if run and (
                counter._handle != run[-1]._handle + 1
                or len(run) >= limits.max_items
                or size + length > RUN_BYTES
            ):
                yield self._request(run, refuse)
                run, size = [], 0
            counter._told = self.epoch
            counter._told_from = batch.number
            run.append(counter)
            size += length
        if run:
            yield self._request(run, refuse)

    def _request(self, run: list[Counter], refuse: Refuse) -> tuple[pb.Request, Callable[[pb.Reply], bool]]:
        self.runs += 1
        number = self.runs
        self.under_way[number] = run

        def take(reply: pb.Reply) -> bool:
            self.under_way.pop(number, None)
            if reply.WhichOneof("body") == "error":
                for counter in run:
                    refuse(counter, reply.error.code, reply.error.text)
            for error in reply.interned.errors:
                if error.index < len(run):
                    refuse(run[error.index], error.code, error.text)
            return True

        return (
            pb.Request(
                intern=pb.Intern(first_handle=run[0]._handle, paths=[counter.path for counter in run])
            ),
            take,
        )

    def refused(self, counter: Counter, code: int, text: str, now: float) -> None:
        """The daemon does not take this path."""
        counter._told = 0
        counter._refused = (code, text)
        counter._refused_until = now + REFUSED_TIME

    def tell_again(self, counter: Counter, number: int, now: float) -> bool:
        """The daemon has no counter behind the handle any more, said the answer to a batch. False: it has
        been told often enough.
        """
        if counter._told != self.epoch or number < counter._told_from:
            return True  # of a batch that was under way when this was first heard
        counter._told = 0
        counter._strikes = counter._strikes + 1 if now - counter._struck_at <= STRIKES_TIME else 1
        counter._struck_at = now
        if counter._strikes >= MAX_STRIKES:
            counter._strikes = 0
            return False
        return True
