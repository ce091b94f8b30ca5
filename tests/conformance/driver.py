"""The conformance suite's driver of the Python package: README.md says what it is to do."""

import sys
import threading

from rationd import Client, Loss, RationError, Refused, SessionLost, TimedOut, Unreachable
from rationd.errors import Code

PATIENCE = 30.0
lock = threading.Lock()
leases = {}


def answer(tag, *words):
    with lock:
        print(tag, *words, flush=True)


def lost(loss: Loss):
    answer("*", "loss", Code.of(loss.code).name, loss.path, loss.amount)


def name_of(error):
    for kind, name in ((TimedOut, "TIMEOUT"), (Unreachable, "UNREACHABLE"), (SessionLost, "LOST")):
        if isinstance(error, kind):
            return name
    return error.code.name


def add(path, n):
    client.gauge(path).incr(int(n))
    return "ok"


def charge(*words):
    options = {}
    while words and "/" not in words[0]:
        word, *words = words
        if word.startswith("wait="):
            options["wait"] = int(word[5:]) / 1000
        else:
            options["dry_run" if word == "dry" else word] = True
    verdict = client.charge(
        [(path, int(n)) for path, n in zip(words[::2], words[1::2])], timeout=PATIENCE, **options
    )
    return "granted" if verdict else "refused"


def lease(name, path, want, ttl):
    leases[name] = client.lease(path, int(want), ttl=min(int(ttl) / 1000, 60))
    leases[name].wait(PATIENCE)
    return "ok"


def returned(name):
    leases.pop(name).close(PATIENCE)
    return "ok"


def close(ms):
    undelivered = client.close(int(ms) / 1000)
    return f"undelivered {undelivered}" if undelivered else "ok"


def done(_result=None):
    return "ok"


COMMANDS = {
    "add": add,
    "needs": lambda word: "ok" if word in ("durable", "checks") else "unsupported",
    "flush": lambda ms: done(client.flush(int(ms) / 1000)),
    "durable": lambda ms: done(client.flush(int(ms) / 1000, durable=True)),
    "get": lambda path: f"value {client.get(path, timeout=PATIENCE).total}",
    "charge": charge,
    "uncharge": lambda path, n: done(client.uncharge(path, int(n), timeout=PATIENCE)),
    "lease": lease,
    "try": lambda name, n: "yes" if leases[name].try_(int(n)) else "no",
    "return": returned,
    "close": close,
}
AT_ONCE = {"add", "try", "needs"}


def run(tag, command, words):
    try:
        answer(tag, COMMANDS[command](*words))
    except Refused as error:
        answer(tag, "refused", *(binding.path for binding in error.bindings))
    except RationError as error:
        answer(tag, "error", name_of(error))


client = Client(sys.argv[1], send_interval=0.01, on_loss=lost)
for line in sys.stdin:
    tag, command, *words = line.split()
    if command in AT_ONCE:
        run(tag, command, words)
    else:
        threading.Thread(target=run, args=(tag, command, words), daemon=True).start()
client.close(2)
