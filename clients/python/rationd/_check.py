"""What is refused at the call: paths, amounts, numbers."""

from __future__ import annotations

import enum
import operator
import re
from typing import SupportsIndex, TypeVar

from google.protobuf.message import Message

from ._wire import MAX_FRAME
from .errors import InvalidArgument

MAX_BYTES = 512
MAX_SEGMENTS = 16
MAX_SEGMENT = 128
INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)
MAX_AMOUNT = 1 << 62
MAX_TIMEOUT = 1e9  # seconds
E = TypeVar("E", bound=enum.Enum)
MAX_MESSAGE = MAX_FRAME - 64  # room for what is filled in when it is sent: id, number, what is known of it
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def check_path(path: str) -> str:
    """The path, if it is one; the daemon decides on what is doubtful."""
    if not isinstance(path, str):
        raise TypeError(f"a path is a str, not {type(path).__name__}")
    reason = _complaint(path)
    if reason:
        raise InvalidArgument(reason, path)
    return path


def _complaint(path: str) -> str:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "not valid Unicode: a lone surrogate"
    segments = path.split("/")
    if not path:
        return "an empty path"
    if len(encoded) > MAX_BYTES:
        return f"longer than {MAX_BYTES} bytes"
    if len(segments) > MAX_SEGMENTS:
        return f"more than {MAX_SEGMENTS} segments"
    for segment in segments:
        reason = _segment_complaint(segment)
        if reason:
            return reason
    return ""


def _segment_complaint(segment: str) -> str:
    if not segment:
        return "an empty segment"
    if len(segment.encode()) > MAX_SEGMENT:
        return f"a segment longer than {MAX_SEGMENT} bytes"
    if segment in (".", "..", "*", "**"):
        return f'"{segment}" is no name for a segment'
    if _CONTROL.search(segment):
        return "a control character"
    if segment[0].isspace() or segment[-1].isspace():
        return "a segment that begins or ends with a blank"
    return ""


def check_int(value: SupportsIndex, low: int, high: int, what: str, item: str | None = None) -> int:
    """The value as an int, if it is a whole number from low to high. Floats are not taken for one, whatever
    they hold.
    """
    if isinstance(value, bool):
        raise TypeError(f"{what} is a whole number, not bool")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {type(value).__name__}") from None
    if not low <= number <= high:
        raise InvalidArgument(f"{what} must be {low} to {high}, not {number}", item)
    return number


def check_seconds(value: float, what: str) -> float:
    """A time that somebody is to wait, 0 or more; also infinity."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is a number of seconds, not {type(value).__name__}")
    if not value >= 0:
        raise InvalidArgument(f"{what} must be 0 seconds or more, not {value}")
    return value


def check_timeout(timeout: float | None) -> float | None:
    """The same, or None, which is also what is longer than any clock can wait."""
    if timeout is None or check_seconds(timeout, "a timeout") > MAX_TIMEOUT:
        return None
    return timeout


def member_of(kind: type[E], value: E | str, what: str) -> E:
    """A member of an enum: itself, or its name."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {kind.__name__} or its name, not {type(value).__name__}")
    try:
        return kind[value.upper()]
    except KeyError:
        names = ", ".join(name.lower() for name in kind.__members__)
        raise InvalidArgument(f"{what} is one of {names}, not {value!r}") from None


def check_size(message: Message, item: str | None = None) -> None:
    """Refuse what no frame can hold: the daemon would end the connection for it, again and again."""
    size = message.ByteSize()
    if size > MAX_MESSAGE:
        raise InvalidArgument(f"a request of {size} bytes; {MAX_MESSAGE} is the most", item)


def check_amount(value: SupportsIndex, item: str | None = None) -> int:
    """What can be charged: 1 to 2^62."""
    return check_int(value, 1, MAX_AMOUNT, "an amount", item)
