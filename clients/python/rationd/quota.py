"""Limits, and what is said of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ._check import member_of


class WindowKind(enum.Enum):
    """What a limit counts in."""

    NONE = 0
    """For ever: all a counter ever counted, what a gauge has now."""
    PER = 1
    """A stretch of time, again and again, aligned to the epoch (UTC)."""
    CALENDAR = 2
    """A day, week (from Monday) or month, in UTC."""
    RATE = 3
    """No stretch, but a steady rate."""


class Unit(enum.Enum):
    """Of a calendar window."""

    DAY = 0
    WEEK = 1
    MONTH = 2


@dataclass(frozen=True)
class Window:
    """The stretch of time that a limit counts in. Window() is none: for ever."""

    kind: WindowKind = WindowKind.NONE
    duration_ms: int = 0
    unit: Unit = Unit.DAY

    @staticmethod
    def per(seconds: float) -> Window:
        """Stretches of so many seconds, 1 to 31 days."""
        return Window(WindowKind.PER, duration_ms=round(seconds * 1000))

    @staticmethod
    def calendar(unit: Unit | str) -> Window:
        """Days, weeks or months: Unit.DAY or "day"."""
        return Window(WindowKind.CALENDAR, unit=member_of(Unit, unit, "a unit"))

    def __str__(self) -> str:
        if self.kind is WindowKind.PER:
            return f"per {self.duration_ms} ms"
        if self.kind is WindowKind.CALENDAR:
            return f"calendar {self.unit.name.lower()}"
        return "rate" if self.kind is WindowKind.RATE else ""


@dataclass(frozen=True)
class Limits:
    """What is set for a pattern and a window; numbers are at most 2^62.

    max is never passed by a charge (0 refuses all, None is no limit); high is passed, but told; low and min
    protect, without a window only. rate, per_ms and burst: rate in so many milliseconds, and at most burst at
    once; then the window is that of RATE.
    shadow: max or rate decides and counts, but refuses nothing.
    """

    max: int | None = None
    high: int | None = None
    low: int = 0
    min: int = 0
    shadow: bool = False
    rate: int = 0
    per_ms: int = 0
    burst: int = 0
    window: Window = field(default_factory=Window)


class BindingKind(enum.Enum):
    """What a limit has to say to a charge."""

    MAX = 0
    """Refuses: a max."""
    RATE = 1
    """Refuses: a rate."""
    HIGH = 2
    """Granted, and over its high now."""
    SHADOW = 3
    """Would have refused, if it were no shadow."""


@dataclass(frozen=True)
class Binding:
    """A limit that has something to say about a charge. kind is None if this version does not know it."""

    kind: BindingKind | None
    path: str
    window: Window
    limit: int
    usage: int
    left: int
    retry_after_ms: int

    @property
    def refuses(self) -> bool:
        """It is why the charge was refused."""
        return self.kind in (BindingKind.MAX, BindingKind.RATE)


@dataclass(frozen=True)
class Verdict:
    """What the daemon says to a charge. It is true if it was granted (or would be, of a dry run)."""

    granted: bool
    bindings: tuple[Binding, ...] = ()
    omitted: int = 0

    def __bool__(self) -> bool:
        return self.granted


@dataclass(frozen=True)
class Rule:
    """Limits as the daemon has them. run_time: set by quota_set, not by the configuration. overridden: does
    not hold, since there is one of run time. source: where it is written; may be empty.
    """

    pattern: str
    limits: Limits
    run_time: bool
    overridden: bool
    source: str


@dataclass(frozen=True)
class Level:
    """One limit that a charge of the explained path meets, and how near it is. left: what would still fit
    here. binds: the least is left here. forced: added beyond max without being asked. ends_in_ms: the window;
    0: it does not end.
    """

    path: str
    limits: Limits
    pattern: str
    source: str
    usage: int
    peak: int
    left: int
    refusals: int
    forced: int
    effective_min: int
    effective_low: int
    binds: bool
    over_high: bool
    over_max: bool
    ends_in_ms: int


@dataclass(frozen=True)
class Explanation:
    """What limits a path: levels from the path to its metric, leaf first."""

    levels: tuple[Level, ...]
