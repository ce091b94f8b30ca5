"""Prometheus takes it: its parsers whatever the names are, and itself, which finds the totals."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request

import pages
from world import Case, Daemon, die_with_us, skip, wait

PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
    from prometheus_client.parser import text_string_to_metric_families as parse_text
except ImportError:
    skip("no python3-prometheus-client")
if PROMTOOL is None or PROMETHEUS is None:
    skip("no prometheus")

OPENMETRICS = "application/openmetrics-text;version=1.0.0"

# Every class of bytes that a segment can have: printable ASCII, and characters of two, three and four bytes.
ASCII = "".join(chr(c) for c in range(0x21, 0x7f) if chr(c) != "/")
HOSTILE = [
    ASCII, "a b", '"', "\\", '\\"', "\\n", "\\\\", "{}", "{a=\"b\"}", "#", "# EOF", "# TYPE x counter", ",", "=", "}", "} 1",
    "\u00a0x\u00a0x", "\u00e4\u00f6\u00fc", "\u20ac\uffff\ufffd\u202e", "\U0001f600\U0010ffff", "x" * 128, '"' * 128, "\\" * 128,
    "\u20ac" * 42, "NaN", "+Inf", "...", "%", "%2F", "%25", "'", "`", "$", "__name__", "le",
]


def values(families):
    """{(name, labels): value} of all samples but those of when they began."""
    found = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


def promtool(text):
    return subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, check=False)


class Names(Case):
    more_lines = "[metric levelled]\nlevels = one two\n[metric up-down]\nkind = gauge\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.expected = {}
        counts = {}
        n = 0
        for text in HOSTILE:
            segment = text.strip(" \u00a0")
            for path, name, labels in (
                    ("plain/" + segment, "plain_total", {"path": segment}),
                    ("keyed/k=" + segment[:100], "keyed_total", None),
                    ("levelled/" + segment + "/x", "levelled_total", None),
                    ("n" + segment + "-name/x", None, None)):
                if len(path.split("/")[-1].encode()) > 128 or len(path.split("/")[0].encode()) > 128:
                    continue
                n += 1
                counts[path] = n
                if labels is not None and "=" not in segment:
                    cls.expected[(name, tuple(labels.items()))] = n
        counts["up-down/x"] = -5
        cls.n = len(counts)
        cls.sum = sum(counts.values())
        cls.daemon.add(counts)

    def check(self, found):
        for key, value in self.expected.items():
            self.assertEqual(found[key], value, key)
        mine = {key: value for key, value in found.items()
                if not key[0].startswith("rationd_") and not key[0].endswith("_created")}
        self.assertEqual((len(mine), sum(mine.values())), (self.n, self.sum))

    def test_text(self):
        text = self.daemon.metrics()
        pages.check(text)
        self.check(values(parse_text(text)))

    def test_openmetrics(self):
        text = self.daemon.metrics(Accept=OPENMETRICS)
        pages.check(text)
        families = list(parse_openmetrics(text))
        self.check(values(families))
        for family in families:
            if family.type == "counter" and not family.name.startswith("rationd_"):
                totals = [s for s in family.samples if s.name.endswith("_total")]
                began = [s for s in family.samples if s.name.endswith("_created")]
                self.assertEqual([s.labels for s in totals], [s.labels for s in began])

    def test_promtool(self):
        """1 would be a page that it can't read; 3 is advice about names."""
        done = promtool(self.daemon.metrics().encode())
        self.assertIn(done.returncode, (0, 3), done)


class Plain(unittest.TestCase):
    def test_promtool(self):
        """Nothing to say about what is named as Prometheus wants it, and about rationd's own."""
        daemon = Daemon(more="[metric requests]\nlevels = tenant\nhelp = Requests.\n"
                             "[metric held]\nkind = gauge\nunit = bytes\n[quota requests/*]\nmax = 10\n")
        daemon.add({"requests/acme": 1, "held/x": 2})
        done = promtool(daemon.metrics().encode())
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))
        daemon.stop()

    def test_families_that_meet(self):
        daemon = Daemon(more="[metric y]\nunit = bytes\n[metric x_created]\nkind = gauge\n[metric g_total]\nkind = gauge\n")
        daemon.add({"x/a": 1, "x_total/a": 2, "x_created/a": 4, "x_total_total": 8, "y": 16, "y_bytes": 32, "a-b": 64,
                    "a.b": 128, "a_b": 256, "U__a_2d_b": 512, "rationd_counters": 1024, "rationd": 2048, "g": 4096,
                    "g_total": 8192, "z_total": 16384, "o/a=1/b=2": 32768, "o/b=2/a=1": 65536})
        for text, parse in ((daemon.metrics(), parse_text), (daemon.metrics(Accept=OPENMETRICS), parse_openmetrics)):
            pages.check(text)
            found = {key: value for key, value in values(parse(text)).items()
                     if not key[0].endswith("_created") or value < 1e9}
            own = [value for key, value in found.items() if not key[0].startswith("rationd_") or key[0] == "rationd_total"]
            self.assertEqual(sum(own), (1 << 17) - 1, found)
            self.assertEqual(found[("z_total", ())], 16384)
            self.assertEqual(found[("x_total", (("path", "a"),))], 1)
            self.assertEqual(found[("U__x__total_total", (("path", "a"),))], 2)
        daemon.stop()


class Scraper(unittest.TestCase):
    def query(self, text):
        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?query=%s" %
                                    (self.port, urllib.parse.quote(text)), timeout=60) as answer:
            return json.load(answer)["data"]["result"]

    def value(self, text):
        try:
            result = self.query(text)
        except OSError:
            return None
        return float(result[0]["value"][1]) if result else None

    def test_queries(self):
        """Its own queries find the totals."""
        daemon = Daemon(more="[metric requests]\nlevels = tenant, service\n[metric held]\nkind = gauge\n"
                             "[quota held/pool]\nmax = 100\n")
        daemon.add({"requests/t%d/s%d" % (i % 10, i): i for i in range(1, 1001)})
        daemon.add({"requests/t1": 7, "held/pool/x": 30, "plain/zone=a/x": 4, "plain/zone=b/x": 5})
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        folder = tempfile.mkdtemp(prefix="rationd-prometheus-")
        with open(folder + "/c.yml", "w", encoding="utf-8") as file:
            file.write("global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: rationd\n    static_configs:\n"
                       "      - targets: ['127.0.0.1:%d']\n" % daemon.port)
        with open(folder + "/log", "wb") as log:
            scraper = subprocess.Popen([PROMETHEUS, "--config.file", folder + "/c.yml", "--storage.tsdb.path", folder + "/d",
                                        "--web.listen-address", "127.0.0.1:%d" % self.port], stderr=log, stdout=log,
                                       preexec_fn=die_with_us)
        try:
            wait(lambda: self.value("sum(requests_total)") == 500500 + 7)
            self.assertEqual(self.value("up"), 1)
            self.assertEqual(self.value('sum(requests_total{tenant="t3"})'), sum(range(3, 1001, 10)))
            self.assertEqual(self.value('sum(requests_total{tenant="t1",service=""})'), 7)
            self.assertEqual(self.value('plain_total{zone="b",path="x"}'), 5)
            self.assertEqual(self.value('sum(held)'), 30)
            self.assertEqual(self.value('rationd_quota_usage{path="held/pool"} / rationd_quota_max'), 0.3)
            self.assertEqual(len(self.query("requests_total")), 1001)
            daemon.add({"requests/t1": 1000000})
            wait(lambda: self.value("sum(requests_total)") == 500507 + 1000000)
            wait(lambda: (self.value('increase(requests_total{tenant="t1",service=""}[1m])') or 0) > 900000)
            self.assertEqual(self.value("max_over_time(up[1m]) - min_over_time(up[1m])"), 0)
        finally:
            scraper.terminate()
            scraper.wait(60)
            shutil.rmtree(folder, ignore_errors=True)
        daemon.stop()


if __name__ == "__main__":
    unittest.main(verbosity=1)
