"""What a process does to clients: forks, and ends.

The child of a fork begins with nothing: a session of its own, and what the parent had added is the parent's.
At the end of a process, also of one that multiprocessing has made, what is left is delivered within the
client's exit_timeout.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._core import Core

_cores: set[Core] = set()


def add(core: Core) -> None:
    """It is to be looked after."""
    _cores.add(core)
    _tell_multiprocessing()


def remove(core: Core) -> None:
    """It was closed."""
    _cores.discard(core)


def _close_all() -> None:
    begun = [(core, core.begin_close(core.options.exit_timeout)) for core in list(_cores)]
    until = time.monotonic() + max((core.options.exit_timeout for core, _ in begun), default=0.0)
    for core, future in begun:
        if future is not None:
            core.finish_close(future, max(0.0, until - time.monotonic()))
    _cores.clear()


def _after_fork() -> None:
    for core in _cores:
        core.forget()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # Processes of multiprocessing clear what is to be done at their end when they begin, and then do what
        # is registered here.
        util.register_after_fork(_tell_multiprocessing, lambda tell: tell())


def _tell_multiprocessing() -> None:
    """Its processes end by os._exit, without atexit, but not without this."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _close_all, exitpriority=0)


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
