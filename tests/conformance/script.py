"""Scripts: how their lines are read. README.md says what they mean."""

import re
import shlex

PLAIN = {
    "do",
    "=",
    "slow",
    "close",
    "down",
    "up",
    "forget",
    "another",
    "metric",
    "refuse",
    "accept",
    "value",
    "flush",
    "quiet",
    "needs",
    "auto",
    "applies",
    "counted",
}
EXCHANGE = re.compile(r"([<>]) (\w+)(?: (?:as|to) (\w+))?\s*(.*)")


class Step:
    """One line. `word` is its first; `args` the rest, or of `<` and `>` see parse_exchange."""

    def __init__(self, number, text):
        self.number, self.text = number, text
        self.word = text.split()[0]
        if self.word in "<>":
            self.parse_exchange()
        elif self.word in PLAIN:
            self.args = shlex.split(text)[1:]
        else:
            raise SyntaxError(f"line {number}: {text}: no such step")

    def parse_exchange(self):
        match = EXCHANGE.fullmatch(self.text)
        if match is None:
            raise SyntaxError(f"line {self.number}: {self.text}")
        self.kind, self.name = match[2], match[3]
        rest = match[4]
        self.fields, rest = braced(rest)
        self.known = self.raw = None
        self.no_known = False
        self.counts = None
        if rest.startswith("known"):
            self.known, rest = braced(rest[5:].strip())
        elif rest.startswith("no known"):
            self.no_known, rest = True, rest[8:].strip()
        if rest.startswith("raw "):
            self.raw, rest = bytes.fromhex(rest[4:]), ""
        elif self.word == ">" and self.kind == "raw":
            self.raw, rest = bytes.fromhex(rest), ""
        if rest == "nothing":
            self.counts = {}
        elif rest:
            words = rest.split()
            self.counts = {}
            for path, delta in zip(words[::2], words[1::2], strict=True):
                self.counts[path] = self.counts.get(path, 0) + int(delta)


def braced(text):
    """What stands in braces at the beginning of the text, or "", and what follows."""
    if not text.startswith("{"):
        return "", text
    depth = 0
    for at, char in enumerate(text):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth == 0:
            return text[1:at], text[at + 1 :].strip()
    raise SyntaxError(f"{text}: a brace is not closed")


def read_script(path):
    """The steps of a file, and its title."""
    steps, title = [], ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if line.startswith("#"):
            title = title or line.lstrip("# ")
        elif line:
            steps.append(Step(number, line))
    return title, steps
