"""Errors: what went wrong, as the daemon said it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .quota import Binding


class Code(enum.IntEnum):
    """Status codes on the wire: names and numbers of google.rpc.Code."""

    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14

    @classmethod
    def of(cls, number: int) -> Code:
        """The code of a number; one of a newer daemon is taken for INTERNAL."""
        try:
            return cls(number)
        except ValueError:
            return cls.INTERNAL


class RationError(Exception):
    """Something was not done. All errors of this package are of this class.

    Attributes:
        code: what kind of failure, as the daemon says it.
        text: for people; may change between versions.
        item: the path that it is about, where it is about one.
    """

    def __init__(self, code: Code, text: str, item: str | None = None) -> None:
        super().__init__(code, text, item)
        self.code = code
        self.text = text
        self.item = item

    def __str__(self) -> str:
        about = ""
        if self.item is not None:
            # What is no path may hold anything, also what no terminal or log should be given.
            about = f"{self.item if self.item and self.item.isprintable() else ascii(self.item)}: "
        return f"{about}{self.text} ({self.code.name})" if self.text else f"{about}{self.code.name}"


class InvalidArgument(RationError, ValueError):
    """What was given is no path, amount, limit or address; nothing was done."""

    def __init__(self, text: str, item: str | None = None) -> None:
        super().__init__(Code.INVALID_ARGUMENT, text, item)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.item)


class NotFound(RationError, LookupError):
    """No such counter, metric or rule."""

    def __init__(self, text: str, item: str | None = None) -> None:
        super().__init__(Code.NOT_FOUND, text, item)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.item)


class Refused(RationError):
    """There is no room for a charge or a lease; nothing was changed.

    Attributes:
        bindings: the limits that refused, the most important first.
        omitted: so many more of them are not listed.
    """

    def __init__(self, bindings: Sequence[Binding], omitted: int = 0) -> None:
        first = bindings[0] if bindings else None
        text = f"no room: {first.usage} of {first.limit} used, {first.left} left" if first else "no room"
        super().__init__(Code.RESOURCE_EXHAUSTED, text, first.path if first else None)
        self.bindings = tuple(bindings)
        self.omitted = omitted

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.bindings, self.omitted)

    @property
    def retry_after_ms(self) -> int:
        """When it may fit: 0 at any moment, -1 never, else not before so many milliseconds are over."""
        waits = [binding.retry_after_ms for binding in self.bindings if binding.refuses]
        return -1 if -1 in waits else max(waits, default=0)


class Unreachable(RationError, ConnectionError):
    """Nobody listens at the daemon's address, or the connection could not be made; nothing was done."""

    def __init__(self, text: str, item: str | None = None) -> None:
        super().__init__(Code.UNAVAILABLE, text, item)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.item)


class TimedOut(RationError, TimeoutError):
    """The answer did not come in time."""

    def __init__(self, text: str, item: str | None = None) -> None:
        super().__init__(Code.DEADLINE_EXCEEDED, text, item)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.item)


class SessionLost(RationError):
    """The daemon has forgotten the session, and given back all that it held: what was asked for has no object
    any more.
    """

    def __init__(
        self, text: str = "the daemon has forgotten the session, and what it held", item: str | None = None
    ) -> None:
        super().__init__(Code.ABORTED, text, item)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.item)


class ClientClosed(RationError):
    """The client was closed."""

    def __init__(self, text: str = "the client is closed", item: str | None = None) -> None:
        super().__init__(Code.FAILED_PRECONDITION, text, item)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.item)


def error_of(code: int, text: str, item: str | None = None) -> RationError:
    """The exception for what the daemon has answered."""
    if code == Code.NOT_FOUND:
        return NotFound(text, item)
    if code == Code.INVALID_ARGUMENT:
        return InvalidArgument(text, item)
    return RationError(Code.of(code), text, item)
