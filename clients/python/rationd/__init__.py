"""Count and ration through rationd.

    from rationd import Client

    client = Client()
    hits = client.counter("requests/acme/web")
    hits.incr()                            # any thread: no system call, no lock
    with client.hold("jobs/acme"):         # room for one job, or Refused
        ...

See README.md, or the documentation of Client; rationd.aio is for asyncio, rationd.statsd for programs that
speak StatsD.
"""

from ._version import VERSION as __version__
from .client import Client
from .counters import Counter, Gauge
from .errors import (
    ClientClosed,
    Code,
    InvalidArgument,
    NotFound,
    RationError,
    Refused,
    SessionLost,
    TimedOut,
    Unreachable,
)
from .lease import Lease
from .quota import Binding, BindingKind, Explanation, Level, Limits, Rule, Unit, Verdict, Window, WindowKind
from .values import Consistency, Kind, Loss, Metric, Value

__all__ = [
    "Binding",
    "BindingKind",
    "Client",
    "ClientClosed",
    "Code",
    "Consistency",
    "Counter",
    "Explanation",
    "Gauge",
    "InvalidArgument",
    "Kind",
    "Lease",
    "Level",
    "Limits",
    "Loss",
    "Metric",
    "NotFound",
    "RationError",
    "Refused",
    "Rule",
    "SessionLost",
    "TimedOut",
    "Unit",
    "Unreachable",
    "Value",
    "Verdict",
    "Window",
    "WindowKind",
    "__version__",
]
