#!/usr/bin/python3
"""Runs a client's driver against scripts. README.md says how."""

import argparse
import os
import pathlib
import re
import selectors
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from google.protobuf import text_format  # noqa: E402

import wire  # noqa: E402
from daemon import Broken, Daemon  # noqa: E402
from script import read_script  # noqa: E402

PATIENCE = float(os.environ.get("RATION_PATIENCE", "60"))
UNASKED = {"durable", "goodbye"}


class Unsupported(Exception):
    """The driver does not have what the script needs."""


class Driver:
    """The client's process: lines in, lines out."""

    def __init__(self, command, url, selector, said):
        self.process = subprocess.Popen([*command, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.selector, self.said = selector, said
        self.buffer = b""
        self.results, self.events = {}, []
        self.ended = False
        os.set_blocking(self.process.stdout.fileno(), False)
        selector.register(self.process.stdout, selectors.EVENT_READ, self.receive)

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        data = self.process.stdout.read()
        if not data:
            self.selector.unregister(self.process.stdout)
            self.ended = True
            return
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            tag, _, result = line.decode().partition(" ")
            self.said(f"   [{tag} {result}]")
            if result == "unsupported":
                raise Unsupported(tag)
            if tag == "*":
                self.events.append(result)
            else:
                self.results[tag] = result

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Player:
    """Plays one script."""

    def __init__(self, messages, command, folder):
        self.messages = messages
        self.transcript = []
        path = os.path.join(folder, "socket")
        self.daemon = Daemon(messages, path, self.transcript.append)
        try:
            self.driver = Driver(command, "unix:" + path, self.daemon.selector, self.transcript.append)
        except OSError as error:
            self.daemon.stop()
            raise SystemExit(f"run.py: {command[0]}: {error}") from error
        self.named, self.last = {}, None

    def stop(self):
        self.driver.stop()
        self.daemon.stop()

    def play(self, steps):
        for step in steps:
            self.transcript.append(f"{step.number:3} {step.text}")
            STEPS[step.word](self, step)
        self.finish()

    def pump(self, what, done):
        """Serve until done() says something; that is returned."""
        until = time.monotonic() + PATIENCE
        while not (result := done()):
            if self.driver.ended:
                raise Broken(f"the driver has ended; expected: {what}")
            left = until - time.monotonic()
            if left <= 0:
                raise Broken(f"nothing happens; expected: {what}")
            for key, _ in self.daemon.selector.select(left):
                key.data()
        return result

    def finish(self):
        self.transcript.append("    (the end: the driver closes)")
        self.driver.process.stdin.close()
        until = time.monotonic() + PATIENCE
        while not self.driver.ended and time.monotonic() < until:
            for key, _ in self.daemon.selector.select(1):
                key.data()
        if not self.driver.ended:
            raise Broken("the driver does not end")
        status = self.driver.process.wait()
        if status != 0:
            raise Broken(f"the driver's exit status is {status}")
        self.quiet(None)
        if self.driver.events or self.driver.results:
            raise Broken(f"what the script does not expect: {self.driver.events or self.driver.results}")

    # ---- steps ----

    def do(self, step):
        self.driver.tell(" ".join(step.args))

    def result(self, step):
        tag, expected = step.args[0], " ".join(step.args[1:])
        if tag == "*":
            self.pump(step.text, lambda: self.driver.events)
            got = self.driver.events.pop(0)
        else:
            self.pump(step.text, lambda: tag in self.driver.results)
            got = self.driver.results.pop(tag)
        if got != expected:
            raise Broken(f"expected: {expected}, got: {got}")

    def request(self, step):
        self.pump(step.text, lambda: self.daemon.inbox)
        slot = self.daemon.inbox.pop(0)
        if slot.kind != step.kind:
            raise Broken(f"expected: {step.text}, got: {slot.request}")
        expected = type(getattr(slot.request, step.kind))()
        text_format.Parse(step.fields, expected)
        compare(expected, getattr(slot.request, step.kind), step)
        if step.no_known and slot.request.HasField("known"):
            raise Broken(f"expected no known, got: {slot.request}")
        if step.known is not None:
            if not slot.request.HasField("known"):
                raise Broken(f"expected known, got: {slot.request}")
            compare(
                text_format.Parse(step.known, self.messages.Known()), slot.request.known, step, exactly=True
            )
        if step.counts is not None:
            counts = {}
            for path, delta in zip(slot.paths, slot.request.add.deltas, strict=True):
                counts[path] = counts.get(path, 0) + delta
            if counts != step.counts:
                raise Broken(f"expected: {step.counts}, got: {counts}")
        self.last = slot
        if step.name:
            self.named[step.name] = slot

    def reply(self, step):
        if step.kind == "raw":
            self.connection().write(step.raw)
            return
        slot = None if step.kind in UNASKED else self.named[step.name] if step.name else self.last
        batch = str(slot.request.add.batch) if slot else "0"
        given = re.sub(r"@batch\b", batch, step.fields)
        fields = re.sub(r"@([^\s}]+)", lambda match: str(slot.paths.index(match[1])), given)
        body = (
            self.daemon.welcome()
            if step.kind == "welcome"
            else type(getattr(self.messages.Reply(), step.kind))()
        )
        text_format.Merge(fields, body)
        if slot is None:
            self.connection()
            self.daemon.tell(step.kind, body, step.raw or b"")
        else:
            self.daemon.answer(slot, step.kind, body, step.raw or b"")

    def connection(self):
        if self.daemon.current is None:
            raise Broken("the client has no connection with its session")
        return self.daemon.current

    def slow(self, step):
        self.daemon.piece = int(step.args[0])
        if self.daemon.current is not None:
            self.daemon.current.piece = self.daemon.piece

    def close(self, _step):
        self.daemon.drop(self.connection())

    def refuse(self, step):
        self.daemon.refused[step.args[0]] = int(step.args[1]), " ".join(step.args[2:])

    def value(self, step):
        self.daemon.values[step.args[0]] = int(step.args[1])

    def needs(self, step):
        self.driver.tell("needs needs " + step.args[0])
        self.pump(step.text, lambda: self.driver.results.pop("needs", None))

    def auto(self, step):
        welcome = text_format.Merge(step.text.partition("{")[2].rpartition("}")[0], self.daemon.welcome())
        self.daemon.auto = welcome if step.args else None

    def applies(self, _step):
        self.daemon.applies = True

    def counted(self, step):
        path, n = step.args[0], int(step.args[1])
        self.pump(step.text, lambda: self.daemon.counted.get(path, 0) >= n)
        if self.daemon.counted[path] != n:
            raise Broken(f"expected: {n}, got: {self.daemon.counted[path]}")

    def forget(self, _step):
        self.daemon.session = None

    def another(self, _step):
        self.daemon.left, self.daemon.session = self.daemon.session, None

    def metric(self, step):
        self.daemon.kinds[step.args[0]] = step.args[1]

    def flush(self, step):
        code = int(step.args[0])
        self.daemon.flush_error = (code, " ".join(step.args[1:])) if code else None

    def quiet(self, _step):
        if self.daemon.inbox:
            raise Broken(f"not expected: {self.daemon.inbox[0].request}")


STEPS = {
    "do": Player.do,
    "=": Player.result,
    "<": Player.request,
    ">": Player.reply,
    "slow": Player.slow,
    "close": Player.close,
    "refuse": Player.refuse,
    "value": Player.value,
    "forget": Player.forget,
    "another": Player.another,
    "metric": Player.metric,
    "flush": Player.flush,
    "quiet": Player.quiet,
    "needs": Player.needs,
    "auto": Player.auto,
    "applies": Player.applies,
    "counted": Player.counted,
    "accept": lambda player, step: player.daemon.refused.pop(step.args[0]),
    "down": lambda player, _step: player.daemon.down(),
    "up": lambda player, _step: player.daemon.up(),
}


def compare(expected, got, step, exactly=False):
    """All that `expected` has set must be so in `got`."""
    fields = [field for field, _ in expected.ListFields()]
    if exactly:
        fields = expected.DESCRIPTOR.fields
    for field in fields:
        if getattr(got, field.name) != getattr(expected, field.name):
            raise Broken(f"expected: {step.text}, got: {got}")


def play(messages, command, path):
    """Plays a script; True if the client did all it must."""
    title, steps = read_script(path)
    with tempfile.TemporaryDirectory() as folder:
        player = Player(messages, command, folder)
        try:
            player.play(steps)
        except Unsupported:
            print(f"SKIPPED {path.stem}: the driver does not support it: {title}")
            return True
        except Broken as error:
            print(
                f"FAILED {path.stem}: {title}\n  " + "\n  ".join(player.transcript) + f"\n  *** {error}",
                flush=True,
            )
            return False
        finally:
            player.stop()
    print(f"ok {path.stem}: {title}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(
        description="run a client against scripts", usage="run.py [SCRIPT...] -- DRIVER..."
    )
    parser.add_argument("--proto", default=HERE.parents[1] / "proto" / "ration.proto")
    parser.add_argument("scripts", nargs="*")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, command = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    if not command:
        parser.error("where is the driver? ... -- DRIVER...")
    names = arguments.scripts or sorted(path.stem for path in (HERE / "scripts").glob("*.txt"))
    messages = wire.load_messages(arguments.proto)
    good = [play(messages, command, HERE / "scripts" / f"{name}.txt") for name in names]
    print(f"{sum(good)} of {len(good)}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
