"""Questions: requests that are no operations, and what is made of their answers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import ration_pb2 as pb
from ._check import MAX_AMOUNT, check_amount, check_int, check_path, check_size, member_of
from .errors import Code, NotFound, RationError, error_of
from .quota import Binding, BindingKind, Explanation, Level, Limits, Rule, Unit, Verdict, Window, WindowKind
from .values import Consistency, Kind, Metric, Value

T = TypeVar("T")

ALL_LEVELS = 0xFFFFFFFF
WALK_ENTRIES = 2000
MAX_PATHS = 1000  # in one Get: it fits a frame, and so does the answer


@dataclass
class Query(Generic[T]):
    """A request without id, the kind of its answer, and how to read all replies to it."""

    request: pb.Request
    answer: str
    parse: Callable[[list[pb.Reply]], T]
    item: str | None = None
    cursor: bytes = b""  # of an earlier answer, by which this goes on

    def __post_init__(self) -> None:
        check_size(self.request, self.item)

    def finish(self, replies: list[pb.Reply]) -> T:
        """The result, or an exception."""
        last = replies[-1]
        if last.WhichOneof("body") == "error":
            if self.cursor and last.error.code == Code.INVALID_ARGUMENT:
                raise RationError(Code.ABORTED, "the daemon was started anew meanwhile", self.item)
            raise error_of(last.error.code, last.error.text, self.item)
        return self.parse(replies)


def number_of(value: enum.Enum) -> Any:
    """What an enum is on the wire; protoc's types want its own enums, and take numbers."""
    return value.value


def consistency_of(value: Consistency | str) -> Any:
    """FRESH, "fresh": its number."""
    return number_of(member_of(Consistency, value, "consistency"))


def value_of(path: str, value: pb.Value) -> Value:
    """A Value, or NotFound and the like."""
    if value.code:
        raise error_of(value.code, value.text, path)
    return Value(path, value.total, value.own, Kind.GAUGE if value.kind == 1 else Kind.COUNTER, value.leaf)


def gets(paths: Iterable[str], consistency: Consistency | str) -> list[Query[list[Value | None]]]:
    """Values of any number of paths, in as few questions as hold them. One at least."""
    if isinstance(paths, str):
        raise TypeError("paths are some of them; of one there is get")
    wanted = [check_path(path) for path in paths]
    return [get(wanted[at : at + MAX_PATHS], consistency) for at in range(0, len(wanted) or 1, MAX_PATHS)]


def get(paths: Sequence[str], consistency: Consistency | str) -> Query[list[Value | None]]:
    """Values of some paths; None for what is not there."""
    request = pb.Request(get=pb.Get(paths=paths, consistency=consistency_of(consistency)))

    def one(path: str, value: pb.Value) -> Value | None:
        try:
            return value_of(path, value)
        except NotFound:
            return None

    return Query(
        request,
        "values",
        lambda replies: [one(path, value) for path, value in zip(paths, replies[-1].values.values)],
    )


def walk(
    root: str, depth: int | None, consistency: Consistency | str, cursor: bytes
) -> Query[tuple[list[Value], bytes]]:
    """One part of a subtree, and the cursor for the next; b"": that was all."""
    levels = ALL_LEVELS if depth is None else check_int(depth, 0, ALL_LEVELS, "a depth")
    if root:
        check_path(root)
    request = pb.Request(
        walk=pb.Walk(
            root=root,
            depth=levels,
            consistency=consistency_of(consistency),
            limit=WALK_ENTRIES,
            cursor=cursor,
        )
    )

    def parse(replies: list[pb.Reply]) -> tuple[list[Value], bytes]:
        entries = [value_of(entry.path, entry.value) for reply in replies for entry in reply.page.entries]
        return entries, replies[-1].page.cursor

    return Query(request, "page", parse, root or None, cursor)


def fold() -> Query[None]:
    """Everything applied is in the totals."""
    return Query(pb.Request(flush=pb.Flush()), "flushed", lambda replies: None)


def status() -> Query[dict[str, int | str]]:
    """What the daemon says of itself."""

    def parse(replies: list[pb.Reply]) -> dict[str, int | str]:
        items = replies[-1].status.items
        return {item.name: item.text if item.WhichOneof("value") == "text" else item.number for item in items}

    return Query(pb.Request(status=pb.StatusQuery()), "status", parse)


def ping() -> Query[None]:
    """Are you there?"""
    return Query(pb.Request(ping=pb.Ping()), "pong", lambda replies: None)


# ---- metrics ----


def _metric(replies: list[pb.Reply]) -> Metric:
    metric = replies[-1].metric
    return Metric(
        metric.name, Kind(metric.kind), metric.max_counters, metric.overflow, metric.expire_after_ms
    )


def metric_set(metric: Metric) -> Query[Metric]:
    """Declare it, or change it."""
    message = pb.Metric(
        name=check_path(metric.name),
        kind=number_of(member_of(Kind, metric.kind, "the kind of a metric")),
        overflow=metric.overflow,
        max_counters=check_int(metric.max_counters, 0, 0xFFFFFFFF, "max_counters", metric.name),
        expire_after_ms=check_int(metric.expire_after_ms, 0, (1 << 63) - 1, "expire_after_ms", metric.name),
    )
    return Query(pb.Request(metric_set=pb.MetricSet(metric=message)), "metric", _metric, metric.name)


def metric_get(name: str) -> Query[Metric]:
    """What it is."""
    return Query(pb.Request(metric_get=pb.MetricQuery(name=check_path(name))), "metric", _metric, name)


# ---- charges and limits ----


def window_of(window: pb.Window) -> Window:
    """As the daemon said it."""
    try:
        return Window(WindowKind(window.kind), window.duration_ms, Unit(window.unit))
    except ValueError:
        return Window()


def binding_of(binding: pb.Binding) -> Binding:
    """As the daemon said it."""
    kind = BindingKind(binding.kind) if binding.kind in {kind.value for kind in BindingKind} else None
    return Binding(
        kind,
        binding.path,
        window_of(binding.window),
        binding.limit,
        binding.usage,
        binding.left,
        binding.retry_after_ms,
    )


def verdict_of(charged: pb.Charged) -> Verdict:
    """As the daemon said it."""
    return Verdict(
        charged.granted, tuple(binding_of(binding) for binding in charged.bindings), charged.omitted
    )


def dry_run(items: Sequence[tuple[str, int]]) -> Query[Verdict]:
    """What would be said to a charge."""
    charge = pb.Charge(dry_run=True)
    for path, amount in items:
        charge.items.add(path=check_path(path), amount=check_amount(amount, path))
    return Query(pb.Request(charge=charge), "charged", lambda replies: verdict_of(replies[-1].charged))


def _wire_window(window: Window) -> pb.Window:
    if not isinstance(window, Window):
        raise TypeError(f"a window is a Window, not {type(window).__name__}")
    return pb.Window(kind=number_of(window.kind), duration_ms=window.duration_ms, unit=number_of(window.unit))


def _wire_limits(limits: Limits) -> pb.QuotaLimits:
    def number(value: int, what: str) -> int:
        return check_int(value, 0, MAX_AMOUNT, what)

    wire = pb.QuotaLimits(
        low=number(limits.low, "low"),
        min=number(limits.min, "min"),
        shadow=limits.shadow,
        rate=number(limits.rate, "rate"),
        per_ms=number(limits.per_ms, "per_ms"),
        burst=number(limits.burst, "burst"),
    )
    if limits.max is not None:
        wire.max = number(limits.max, "max")
    if limits.high is not None:
        wire.high = number(limits.high, "high")
    return wire


def _limits(wire: pb.QuotaLimits, window: pb.Window) -> Limits:
    return Limits(
        wire.max if wire.HasField("max") else None,
        wire.high if wire.HasField("high") else None,
        wire.low,
        wire.min,
        wire.shadow,
        wire.rate,
        wire.per_ms,
        wire.burst,
        window_of(window),
    )


def quota_set(pattern: str, limits: Limits) -> Query[list[str]]:
    """Set limits at run time; the result is what is unwise about them."""
    window = (
        Window(WindowKind.RATE) if limits.rate and limits.window.kind is WindowKind.NONE else limits.window
    )
    rule = pb.Rule(pattern=pattern, window=_wire_window(window), limits=_wire_limits(limits))
    return Query(
        pb.Request(quota_set=pb.QuotaSet(rule=rule)),
        "quota_ok",
        lambda replies: list(replies[-1].quota_ok.notes),
        pattern,
    )


def quota_remove(pattern: str, window: Window | None) -> Query[list[str]]:
    """Remove what was set at run time; None: in all windows."""
    remove = pb.QuotaRemove(pattern=pattern, all_windows=window is None)
    if window is not None:
        remove.window.CopyFrom(_wire_window(window))
    return Query(
        pb.Request(quota_remove=remove), "quota_ok", lambda replies: list(replies[-1].quota_ok.notes), pattern
    )


def quota_list(cursor: bytes) -> Query[tuple[list[Rule], bytes]]:
    """Some of the rules, and the cursor for the next ones; b"": that was all."""

    def parse(replies: list[pb.Reply]) -> tuple[list[Rule], bytes]:
        rules = [
            Rule(
                rule.pattern, _limits(rule.limits, rule.window), rule.layer == 1, rule.overridden, rule.source
            )
            for rule in replies[-1].quota_rules.rules
        ]
        return rules, replies[-1].quota_rules.cursor

    return Query(pb.Request(quota_list=pb.QuotaList(cursor=cursor)), "quota_rules", parse)


def quota_explain(path: str) -> Query[Explanation]:
    """What limits a path."""

    def parse(replies: list[pb.Reply]) -> Explanation:
        return Explanation(
            tuple(
                Level(
                    level.path,
                    _limits(level.limits, level.window),
                    level.pattern,
                    level.source,
                    level.usage,
                    level.peak,
                    level.left,
                    level.refusals,
                    level.forced,
                    level.effective_min,
                    level.effective_low,
                    level.binds,
                    level.over_high,
                    level.over_max,
                    level.ends_in_ms,
                )
                for level in replies[-1].quota_explained.levels
            )
        )

    return Query(
        pb.Request(quota_explain=pb.QuotaExplain(path=check_path(path))), "quota_explained", parse, path
    )
