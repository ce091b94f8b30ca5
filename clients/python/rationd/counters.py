"""Counters: what programs add to."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from ._check import INT64_MAX, INT64_MIN, check_int

if TYPE_CHECKING:
    from ._core import Core

_MAX = INT64_MAX


class Counter:
    """What is counted at one path. Made by Client.counter; keep it, and add to it from any thread.

    An addition is an append to a list of this counter, which no other thread can come between, and a look at
    a flag: no lock, no system call. The client's thread takes the list's sum from time to time. (The flag is
    looked at after the append, and cleared before the list is emptied, so whatever is appended is seen by one
    emptying or the other.)
    """

    __slots__ = (
        "path",
        "_core",
        "_pending",
        "_append",
        "_marked",
        "_handle",
        "_told",
        "_told_from",
        "_unsent",
        "_refused_until",
        "_refused",
        "_strikes",
        "_struck_at",
        "__weakref__",
    )

    def __init__(self, core: Core, path: str) -> None:
        self.path = path
        self._core = core
        self._pending: list[int] = []
        self._append = self._pending.append
        self._marked = False
        # Of the client's thread alone, see _outbox.py:
        self._handle = -1
        self._told = 0
        self._told_from = 0
        self._unsent = 0
        self._refused_until = 0.0
        self._refused = (0, "")
        self._strikes = 0
        self._struck_at = 0.0

    def incr(self, n: int = 1) -> None:
        """Add n, 0 to 2^63-1. Returns at once; what the daemon will not count is reported to on_loss."""
        if n.__class__ is not int or not 0 <= n <= _MAX:
            n = self._checked(n)
        self._append(n)
        if not self._marked:
            self._mark()

    increment = incr

    def _checked(self, n: SupportsIndex) -> int:
        return check_int(n, 0, INT64_MAX, "growth of a counter", self.path)

    def _mark(self) -> None:
        try:
            self._marked = True
            self._core.note_dirty(self)
        except BaseException:
            # Of a signal, say: marked and not told of, it would never be looked at again.
            self._marked = False
            raise

    def _take(self) -> int:
        """What was added since the last time; for the client's thread."""
        self._marked = False
        n = len(self._pending)
        growth = sum(self._pending[:n])
        del self._pending[:n]
        return growth

    def _forget(self) -> None:
        """In the child of a fork: nothing was added, and the daemon knows nothing."""
        self._pending.clear()
        self._marked = False
        self._handle = -1
        self._told = 0
        self._unsent = 0
        self._refused_until = 0.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path!r}>"


class Gauge(Counter):
    """What goes up and down at one path. Made by Client.gauge; its metric must be declared as a gauge."""

    __slots__ = ()

    def incr(self, n: int = 1) -> None:
        """Add n, which may be negative. Returns at once."""
        if n.__class__ is not int or not -_MAX <= n <= _MAX:
            n = self._checked(n)
        self._append(n)
        if not self._marked:
            self._mark()

    increment = incr

    def decr(self, n: int = 1) -> None:
        """Take n away. Returns at once."""
        if n.__class__ is not int or not -_MAX <= n <= _MAX:
            n = check_int(n, -INT64_MAX, INT64_MAX, "a change of a gauge", self.path)
        self._append(-n)
        if not self._marked:
            self._mark()

    decrement = decr

    def _checked(self, n: SupportsIndex) -> int:
        return check_int(n, INT64_MIN, INT64_MAX, "a change of a gauge", self.path)
