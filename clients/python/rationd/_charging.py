"""Charges and their return, as operations with futures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Union

from . import ration_pb2 as pb
from ._asking import reject, resolve
from ._check import check_amount, check_path, check_seconds
from ._operations import Operation
from ._queries import verdict_of
from .errors import InvalidArgument, RationError, Refused
from .quota import Verdict

if TYPE_CHECKING:
    from ._core import Core

MAX_ITEMS = 10000
MAX_WAIT_MS = 86400000

Items = Union[str, Mapping[str, int], Iterable[tuple[str, int]]]
"""What to charge: a path (and an amount beside it), or paths with amounts."""


def checked_items(what: Items, n: int) -> list[tuple[str, int]]:
    """Paths and amounts. Raises TypeError or InvalidArgument."""
    if isinstance(what, str):
        what = [(what, n)]
    try:
        pairs = [(path, amount) for path, amount in (what.items() if isinstance(what, Mapping) else what)]
    except (TypeError, ValueError):
        raise TypeError("a charge is of a path, or of paths with amounts: a mapping, or pairs") from None
    items = [(check_path(path), check_amount(amount, path)) for path, amount in pairs]
    if not 1 <= len(items) <= MAX_ITEMS:
        raise InvalidArgument(f"a charge has 1 to {MAX_ITEMS} items, not {len(items)}")
    return items


def checked_wait(wait: float) -> float:
    """Seconds that a charge may wait for room; more than a day is a day. Raises TypeError or InvalidArgument."""
    return min(MAX_WAIT_MS / 1000, check_seconds(wait, "wait"))


class Held:
    """What a hold has charged: `era` is that of the operations when it was granted."""

    era: int | None = None


def charge(
    core: Core, items: list[tuple[str, int]], detached: bool, wait: float, held: Held | None = None
) -> Future[Verdict]:
    """Charge them all or none: the verdict, if granted, else Refused. Cancelled: it is undone, as soon as it
    is known to be granted.
    """
    body = pb.Charge(detached=detached, wait_ms=round(wait * 1000))
    for path, amount in items:
        body.items.add(path=path, amount=amount)
    future: Future[Verdict] = Future()

    def take(reply: pb.Reply | None, error: RationError | None) -> None:
        if error is not None or reply is None:
            reject(future, error or Refused(()))
            return
        verdict = verdict_of(reply.charged)
        if held is not None:
            held.era = core.operations.era
        if not verdict.granted:
            reject(future, Refused(verdict.bindings, verdict.omitted))
        elif not resolve(future, verdict):
            for path, amount in items:
                core.uncharge_quietly(path, amount, detached)

    operation = Operation(body, take, items[0][0] if len(items) == 1 else None)
    if body.wait_ms:
        operation.room_until = time.monotonic() + body.wait_ms / 1000

    def withdraw(done: Future[Verdict]) -> None:
        operation.withdrawn = done.cancelled()

    future.add_done_callback(withdraw)
    core.operate(operation)
    return future


def abandon(core: Core, future: Future[Verdict], items: list[tuple[str, int]], detached: bool) -> None:
    """Nobody waits for a charge any more: it is undone, also if it was granted a moment ago."""
    if not future.cancel() and future.exception() is None:
        for path, amount in items:
            core.post(core.uncharge_quietly, path, amount, detached)


def give_back(core: Core, items: list[tuple[str, int]], held: Held) -> list[Future[None]]:
    """The end of a hold: given back when the daemon is there, unless it is gone with its session; then another
    one may have been charged since.
    """
    return [_uncharge(core, path, amount, False, held) for path, amount in items]


def uncharge(core: Core, path: str, n: int, detached: bool) -> Future[None]:
    """Give back."""
    return _uncharge(core, path, n, detached, None)


def _uncharge(core: Core, path: str, n: int, detached: bool, held: Held | None) -> Future[None]:
    body = pb.Uncharge(path=check_path(path), amount=check_amount(n, path), detached=detached)
    future: Future[None] = Future()

    def take(reply: pb.Reply | None, error: RationError | None) -> None:
        if error is not None:
            reject(future, error)
        else:
            resolve(future, None)

    operation = Operation(body, take, path)
    operation.dies_with_session = not detached
    if held is not None:
        operation.waits_for_daemon = True
        operation.era = held.era
    core.operate(operation)
    return future
