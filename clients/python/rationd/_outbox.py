"""Growth on its way to the daemon.

    lists of counters --collect--> unsent, one number per counter --cut--> numbered batches --applied, durable--> gone

A counter whose `_unsent` is not 0 stands in the queue, once, and is cut in its turn. A batch is kept until it
is applied, and, where the daemon keeps a file, until it is durable. What can't be cut stays merged, so memory
is bounded by the number of counters and the bytes of batches kept, however long the daemon is away.

Tickets: each place in the queue has a number. What was collected before `given` was T is applied (or reported)
once settled() >= T.

Threads: the client's thread alone.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable

from ._check import INT64_MAX, INT64_MIN
from .counters import Counter
from .errors import Code

MAX_ENTRIES = 4000
ENTRY_BYTES = 16  # a reference and a delta
BATCH_BYTES = 200


class Batch:
    """Growth under a number. Its entries never change while the daemon may count them."""

    __slots__ = ("number", "counters", "deltas", "ticket", "applied")

    def __init__(self, number: int, counters: list[Counter], deltas: array[int], ticket: int) -> None:
        self.number = number
        self.counters = counters
        self.deltas = deltas
        self.ticket = ticket  # the first that is in it
        self.applied = False

    def size(self) -> int:
        """What it is taken for in memory."""
        return BATCH_BYTES + ENTRY_BYTES * len(self.counters)

    def remove(self, indexes: Iterable[int]) -> None:
        """Entries that were not counted, and must not be if it is ever sent again."""
        gone = set(indexes)
        kept = [i for i in range(len(self.counters)) if i not in gone]
        self.counters = [self.counters[i] for i in kept]
        self.deltas = array("q", (self.deltas[i] for i in kept))


class Outbox:
    """See above. `lose(counter, code, amount, text)` reports what is not counted."""

    def __init__(self, lose: Callable[[Counter, int, int, str], None]) -> None:
        self.lose = lose
        self.begin()

    def begin(self) -> None:
        """As at first: nothing."""
        self.queue: dict[Counter, None] = {}
        self.kept: deque[Batch] = deque()
        self.kept_bytes = 0
        self.next_number = 1
        self.unapplied = 1  # the lowest number that is not applied
        self.next_handle = 0
        self.given = 0
        self.cut_tickets = 0
        self.given_back = 0  # `given` after growth was last put back
        self.waits = False  # there may be more to send with it soon

    # ---- in ----

    def add(self, counter: Counter, growth: int) -> None:
        """Take growth in."""
        counter._unsent += growth
        if counter not in self.queue:
            self.queue[counter] = None
            self.given += 1

    def give_back(self, counter: Counter, growth: int) -> None:
        """Growth that was cut, and is to be cut again: whoever waits for it waits on."""
        self.add(counter, growth)
        self.given_back = self.given

    # ---- batches ----

    def cut(self, max_entries: int, max_handles: int, now: float) -> Batch | None:
        """The next batch; None if there is nothing to send."""
        counters: list[Counter] = []
        deltas: array[int] = array("q")
        first = self.cut_tickets
        rest: list[tuple[Counter, int]] = []
        while self.queue and len(counters) < min(max_entries, MAX_ENTRIES):
            counter = next(iter(self.queue))
            del self.queue[counter]
            self.cut_tickets += 1
            growth, counter._unsent = counter._unsent, 0
            if growth == 0 or self._lost_at_once(counter, growth, max_handles, now):
                continue
            delta = max(INT64_MIN, min(INT64_MAX, growth))
            if delta != growth:
                rest.append((counter, growth - delta))
            counters.append(counter)
            deltas.append(delta)
        for counter, growth in rest:
            self.give_back(counter, growth)
        if not counters:
            return None
        batch = Batch(self.next_number, counters, deltas, first)
        self.next_number += 1
        self.kept.append(batch)
        self.kept_bytes += batch.size()
        return batch

    def _lost_at_once(self, counter: Counter, growth: int, max_handles: int, now: float) -> bool:
        if counter._refused_until > now:
            code, text = counter._refused
            self.lose(counter, code, growth, text or "the daemon has refused this path a moment ago")
        elif self._handle(counter) >= max_handles:
            self.lose(
                counter, Code.RESOURCE_EXHAUSTED, growth, "the daemon takes no more counters from one client"
            )
        else:
            return False
        return True

    def _handle(self, counter: Counter) -> int:
        if counter._handle < 0:
            counter._handle = self.next_handle
            self.next_handle += 1
        return counter._handle

    def find(self, number: int) -> Batch | None:
        """The kept batch of this number."""
        at = number - self.kept[0].number if self.kept else -1
        return self.kept[at] if 0 <= at < len(self.kept) else None

    def settle(self, batch: Batch, wrong: Iterable[int]) -> None:
        """It was applied, but for some entries."""
        self.kept_bytes -= batch.size()
        batch.remove(wrong)
        batch.applied = True
        self.unapplied = batch.number + 1
        self.kept_bytes += batch.size()

    def drop_through(self, number: int) -> None:
        """Batches up to this number are never needed again."""
        while self.kept and self.kept[0].number <= number:
            self.kept_bytes -= self.kept.popleft().size()
        self.unapplied = max(self.unapplied, number + 1)

    def fit(self, max_entries: int) -> None:
        """Another daemon may take less in one request: have what does not fit cut anew, and send an empty
        batch in its place.
        """
        for batch in self.kept:
            if not batch.applied and len(batch.counters) > max_entries:
                for counter, delta in zip(batch.counters, batch.deltas):
                    self.give_back(counter, delta)
                self.empty(batch)

    def empty(self, batch: Batch) -> None:
        """Its number is to be sent, but none of its entries."""
        self.kept_bytes -= batch.size()
        batch.remove(range(len(batch.counters)))
        self.kept_bytes += batch.size()

    def send_again(self, counted: bool) -> None:
        """The daemon does not know the numbers of what is kept. counted: but it has counted what was applied,
        and is told only the numbers.
        """
        for batch in self.kept:
            if batch.applied and counted:
                self.empty(batch)
            batch.applied = False
        self.unapplied = self.oldest()

    def oldest(self) -> int:
        """The lowest number that may still be sent."""
        return self.kept[0].number if self.kept else self.next_number

    # ---- what is left ----

    def settled(self) -> int:
        """Tickets below this are done with."""
        batch = self.find(self.unapplied)
        return batch.ticket if batch else self.cut_tickets

    def give_up(self, text: str) -> int:
        """Report all that is not applied; how much that was, in magnitude."""
        left: dict[Counter, int] = {}
        for batch in self.kept:
            if not batch.applied:
                for counter, delta in zip(batch.counters, batch.deltas):
                    left[counter] = left.get(counter, 0) + delta
        for counter in self.queue:
            left[counter] = left.get(counter, 0) + counter._unsent
            counter._unsent = 0
        self.queue.clear()
        self.kept.clear()
        for counter, amount in left.items():
            if amount:
                self.lose(counter, Code.UNAVAILABLE, amount, text)
        return sum(abs(amount) for amount in left.values())
