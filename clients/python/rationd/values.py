"""What is read: values of counters, and how exact they are."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Consistency(enum.Enum):
    """How exact an answer must be."""

    FRESH = 0
    """At most the daemon's pending threshold behind; the default."""
    CACHED = 1
    """The cheapest: totals as they are."""
    EXACT = 2
    """All that any client's acknowledged batches hold."""


class Kind(enum.Enum):
    """Of a metric."""

    COUNTER = 0
    """Only grows."""
    GAUGE = 1
    """Goes up and down."""


@dataclass(frozen=True)
class Value:
    """A counter: `own` was added at this very path, `total` is own and what lies below. int(value) is the
    total.
    """

    path: str
    total: int
    own: int
    kind: Kind
    leaf: bool

    def __int__(self) -> int:
        return self.total


@dataclass(frozen=True)
class Metric:
    """How a metric is declared. max_counters 0: no ceiling of its own. overflow: past it is counted under
    <parent>/__other__.
    expire_after_ms: idle leaves are removed after this; 0: never."""

    name: str
    kind: Kind = Kind.COUNTER
    max_counters: int = 0
    overflow: bool = False
    expire_after_ms: int = 0


@dataclass(frozen=True)
class Loss:
    """Something that was added and is not counted. code: a Code, or the number of one that this version does
    not know.
    """

    code: int
    path: str
    amount: int
    text: str
