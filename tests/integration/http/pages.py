"""What holds for every page of /metrics, whatever is on it."""

import re

SERIES = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)((?:\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+\})?) (-?[0-9.e+-]+)$')

LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')


def check(text):
    """Each family together, once, with HELP and TYPE; each series once. {series: value}, and the names of counters' families."""
    families, series, counters, seen = set(), {}, set(), set()
    name, kind = None, None
    helped = None
    for line in text.split("\n")[:-1]:
        if line == "# EOF" or line.startswith("# UNIT "):
            continue
        if line.startswith("# HELP "):
            helped = line.split(" ")[2]
            assert helped not in families, "the family %s is there twice" % helped
            families.add(helped)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == helped and kind in ("counter", "gauge"), line
            if kind == "counter":
                counters.add(name)
            continue
        match = SERIES.match(line)
        assert match, repr(line)
        own = match.group(1)
        suffixes = ("", "_total", "_created") if kind == "counter" else ("",)
        assert own in [name + suffix for suffix in suffixes], "%s is in the family %s" % (own, name)
        key = own + match.group(2)
        labels = LABEL.findall(match.group(2))
        assert len(dict(labels)) == len(labels), "%s has a label twice" % key
        same = (own, frozenset(labels))
        assert same not in seen, "%s is there twice" % key
        seen.add(same)
        series[key] = float(match.group(3))
    assert text == "" or text.endswith("\n")
    return series, counters


def only_grows(before, after):
    """Of two pages, one after the other: no counter steps back."""
    for key, value in before[0].items():
        name = key.partition("{")[0]
        if name in before[1] and key in after[0]:
            assert after[0][key] >= value, "%s went from %d to %d" % (key, value, after[0][key])
