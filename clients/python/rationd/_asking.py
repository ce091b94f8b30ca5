"""Questions on their way: requests that change nothing if they are sent twice, and so are sent again after a
break.

Threads: the client's thread alone, but for the futures.
"""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, TypeVar

from . import ration_pb2 as pb
from ._queries import Query
from .errors import RationError, Unreachable

if TYPE_CHECKING:
    from ._link import Link

T = TypeVar("T")
MAX_UNDER_WAY = 64


def resolve(future: Future[T], result: T) -> bool:
    """False: nobody waits any more."""
    try:
        future.set_result(result)
    except InvalidStateError:
        return False
    return True


def reject(future: Future[Any], error: BaseException) -> None:
    """Unless nobody waits any more."""
    try:
        future.set_exception(error)
    except InvalidStateError:
        pass


class Asked:
    """A question, and what has come of it."""

    __slots__ = ("query", "future", "replies")

    def __init__(self, query: Query[Any], future: Future[Any]) -> None:
        self.query = query
        self.future = future
        self.replies: list[pb.Reply] = []


class Questions:
    """Those that wait to be put on the connection, and those on it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """As at first: none."""
        self.queued: list[Asked] = []
        self.under_way: list[Asked] = []

    @property
    def n_due(self) -> int:
        """So many answers should come."""
        return len(self.under_way)

    def add(self, query: Query[Any], future: Future[Any]) -> None:
        """Ask."""
        self.queued.append(Asked(query, future))

    def put(self, link: Link, now: float) -> None:
        """Put them on the connection."""
        while self.queued and len(self.under_way) < MAX_UNDER_WAY:
            asked = self.queued.pop(0)
            if not asked.future.done():
                self._put(link, asked)

    def _put(self, link: Link, asked: Asked) -> None:
        def take(reply: pb.Reply) -> bool:
            kind = reply.WhichOneof("body")
            asked.replies.append(reply)
            if kind == "page" and asked.query.answer == "page" and not reply.page.last:
                return False
            self.under_way.remove(asked)
            if kind not in (asked.query.answer, "error"):
                link.fail(link.now, "a reply that does not fit its request")
                reject(asked.future, Unreachable("a reply that does not fit its request"))
            else:
                finish(asked)
            return True

        self.under_way.append(asked)
        link.put(asked.query.request, take)

    def disconnected(self) -> None:
        """They have to be asked again."""
        for asked in self.under_way:
            asked.replies.clear()
        self.queued[:0] = self.under_way
        self.under_way.clear()

    def unreachable(self, text: str) -> None:
        """Nobody listens."""
        for asked in self.queued:
            reject(asked.future, Unreachable(text, asked.query.item))
        self.queued.clear()

    def end_all(self, error: RationError) -> None:
        """The client closes."""
        for asked in self.queued + self.under_way:
            reject(asked.future, error)
        self.begin()


def finish(asked: Asked) -> None:
    """Give the result to who waits for it."""
    try:
        resolve(asked.future, asked.query.finish(asked.replies))
    except Exception as error:
        reject(asked.future, error)
