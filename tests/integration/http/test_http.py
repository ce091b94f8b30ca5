"""Requests as they should be, and as they should not."""

import contextlib
import gzip
import json
import os
import random
import re
import socket
import struct
import sys
import unittest

from world import PATIENCE, Case, Daemon, Reply, has_ipv6_loopback, read_all, wait

MORE = """
[metric requests]
levels = tenant, service
help = What came in.
[metric held]
kind = gauge
[quota requests/acme]
max = 1000
per = 1m
"""


class Metrics(Case):
    more_lines = MORE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.add({"requests/acme/web": 5, "requests/acme": 1, "held/x": 7})

    def test_text(self):
        reply = self.daemon.get("/metrics")
        self.assertEqual(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        text = reply.body.decode()
        self.assertIn("# HELP requests_total What came in.\n# TYPE requests_total counter\n"
                      'requests_total{tenant="acme"} 1\n'
                      'requests_total{tenant="acme",service="web"} 5\n', text)
        self.assertIn('# TYPE held gauge\nheld{path="x"} 7\n', text)
        self.assertRegex(text, r'rationd_quota_usage\{path="requests/acme",window="1m"\} [06]\n')
        self.assertIn('rationd_quota_max{path="requests/acme",window="1m"} 1000\n', text)
        self.assertIn("\nrationd_counters 5\n", text)
        self.assertIn("\n# TYPE rationd_flushes_run_total counter\n", text)

    def test_openmetrics(self):
        reply = self.daemon.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        self.assertEqual(reply.headers["content-type"],
                         "application/openmetrics-text; version=1.0.0; charset=utf-8")
        text = reply.body.decode()
        self.assertIn("# TYPE requests counter\n", text)
        self.assertRegex(text, r'requests_total\{tenant="acme"\} 1\nrequests_created\{tenant="acme"\} \d+\.\d{9}\n')
        self.assertTrue(text.endswith("\n# EOF\n"))

    def test_gzip(self):
        reply = self.daemon.get("/metrics", Accept_Encoding="gzip")
        self.assertEqual(reply.headers["content-encoding"], "gzip")
        self.assertEqual(reply.headers["vary"], "Accept, Accept-Encoding")
        self.assertIn(b"\nrequests_total{", gzip.decompress(reply.body))
        self.assertNotIn("content-encoding", self.daemon.get("/metrics", Accept_Encoding="gzip;q=0").headers)

    def test_prometheus_accept(self):
        for accept in ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                       "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                       "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
                       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"):
            reply = self.daemon.get("/metrics", Accept=accept)
            self.assertIn("openmetrics", reply.headers["content-type"])

    def test_http_1_0(self):
        text = self.daemon.raw(b"GET /metrics HTTP/1.0\r\n\r\n")
        head, _, body = text.partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head)
        self.assertIn(b"\nrequests_total{", body)

    def test_http_1_0_kept_alive(self):
        """Without chunks a page ends with its connection, whatever was asked for; what has a length leaves it open."""
        text = self.daemon.raw(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                               b"GET /metrics HTTP/1.0\r\nConnection: Keep-Alive, TE\r\n\r\n")
        health = Reply(text)
        self.assertEqual((health.body, health.headers["connection"]), (b"ok\n", "keep-alive"))
        head, _, body = health.rest.partition(b"\r\n\r\n")
        self.assertNotIn(b"keep-alive", head.lower())
        self.assertNotIn(b"content-length", head.lower())
        self.assertIn(b"\nrequests_total{", body)

    def test_head(self):
        for path in ("/metrics", "/healthz", "/api/v1/tree", "/nothing"):
            text = self.daemon.raw(b"HEAD %s HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n" %
                                   path.encode())
            head, _, rest = text.partition(b"\r\n\r\n")
            self.assertIn(b"200 OK" if path != "/nothing" else b"404 Not Found", head)
            self.assertTrue(rest.startswith(b"HTTP/1.1 200 OK\r\n"), rest)


class Api(Case):
    more_lines = MORE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.add({"requests/acme/web": 5, "held/x": -7, "big": 2**53, "bigger": 2**53 + 1,
                        "requests/a b\u00e4\"": 3, **{"many/%d" % i: i + 1 for i in range(2500)}})

    def json(self, path, status=200):
        reply = self.daemon.get(path)
        self.assertEqual(reply.headers["content-type"], "application/json")
        self.assertEqual(reply.status, status, reply.body)
        return json.loads(reply.body)

    def test_counters(self):
        answer = self.json("/api/v1/counters?path=requests/acme&path=big&path=bigger&path=held/x"
                           "&path=requests/a+b%C3%A4%22&consistency=exact")
        self.assertEqual([(c["own"], c["total"], c["kind"], c["leaf"]) for c in answer["counters"]],
                         [(0, 5, "counter", False), (2**53, 2**53, "counter", True),
                          (str(2**53 + 1), str(2**53 + 1), "counter", True), (-7, -7, "gauge", True),
                          (3, 3, "counter", True)])
        self.assertEqual(answer["error_bound"], 0)
        self.assertEqual(answer["counters"][4]["path"], "requests/a b\u00e4\"")

    def test_unknown_counters(self):
        answer = self.json("/api/v1/counters?path=nothing&path=a//b&path=%ff&path=a%00b")
        self.assertEqual([c["error"] for c in answer["counters"]],
                         ["NOT_FOUND"] + 3 * ["INVALID_ARGUMENT"])
        self.assertIsNone(answer["counters"][2]["path"])

    def test_tree(self):
        answer = self.json("/api/v1/tree?path=requests&depth=1")
        self.assertEqual([(c["path"], c["depth"], c["total"]) for c in answer["counters"]],
                         [("requests", 1, 8), ("requests/a b\u00e4\"", 2, 3), ("requests/acme", 2, 5)])
        self.assertIsNone(answer["next"])
        self.json("/api/v1/tree?path=nothing", 404)
        self.json("/api/v1/tree?path=%2F", 400)

    def test_tree_in_pages(self):
        for limit in (1, 7, 1000, 10000):
            seen, cursor = [], ""
            while cursor is not None and len(seen) < 2501:
                answer = self.json("/api/v1/tree?path=many&limit=%d%s" % (limit, cursor and "&cursor=" + cursor))
                self.assertLessEqual(len(answer["counters"]), limit)
                seen += [c["path"] for c in answer["counters"]]
                cursor = answer["next"]
                if limit == 1 and len(seen) > 50:
                    break
            self.assertEqual(len(seen), len(set(seen)))
            self.assertIn(len(seen), (51, 2501))
        answer = self.json("/api/v1/tree?path=many&limit=1")
        self.json("/api/v1/tree?path=requests&cursor=" + answer["next"], 400)

    def test_explain(self):
        answer = self.json("/api/v1/quota/explain?path=requests/acme/web")
        level = answer["levels"][0]
        self.assertEqual((level["path"], level["window"], level["max"], level["rule"], level["binds"]),
                         ("requests/acme", "per 1m", 1000, "requests/acme", True))
        self.assertIn(level["usage"], (0, 5))
        self.assertTrue(level["source"].startswith(self.daemon.config + ":"))
        self.json("/api/v1/quota/explain?path=nothing", 404)

    def test_explain_as_rationctl(self):
        """What rationctl says of limits, in the same words; and whether they are frozen."""
        for limit in (("ex/acme", "--max", str(2**53 + 5), "--high", "70", "--min", "5", "--low", "9"),
                      ("ex/acme", "--max", "100", "--per", "1d", "--shadow"), ("ex/acme", "--rate", "7/2s", "--burst", "900"),
                      ("ex/*", "--high", "1", "--calendar", "week"), ("ex", "--max", "1000"), ("ex/zed", "--min", "2")):
            self.daemon.ctl("quota", "set", *limit)
        self.daemon.add({"ex/acme/web": 80, "ex/zed": 20})
        with self.lease("ex/acme/web", 3):
            answer = self.json("/api/v1/quota/explain?path=ex/acme/web")
            told = json.loads(self.daemon.ctl("--json", "quota", "explain", "ex/acme/web"))
        frozen = [level.pop("frozen") for level in answer["levels"]]
        self.assertEqual(len(frozen), 5)
        for end in [*answer["levels"], *told["levels"]]:
            self.assertTrue(end.pop("ends_in_ms") is None or end["window"] in ("per 1d", "calendar week"), end)
        for end in answer["leases"] + told["leases"]:
            self.assertGreater(end.pop("expires_in_ms"), 0)
        self.maxDiff = None
        self.assertEqual(answer, told)

    @contextlib.contextmanager
    def lease(self, path, units):
        """A program that has one, if this Python can be it."""
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.environ["RATIOND"])), "python"))
        try:
            from rationd import Client
        except ImportError:
            yield
            return
        with Client(self.daemon.url) as client, client.lease(path, units) as lease:
            lease.wait()
            yield

    def test_lines(self):
        """What is read by people ends as a line does, whatever it is."""
        for path in ("/api/v1/tree", "/api/v1/counters?path=big", "/api/v1/quota/explain?path=big", "/api/v1/tree?x", "/x",
                     "/", "/healthz", "/readyz", "/metrics"):
            body = self.daemon.get(path).body
            self.assertTrue(body.endswith(b"\n") and not body.endswith(b"\n\n"), path)

    def test_wrong_parameters(self):
        for path in ("counters", "counters?pat=x", "counters?path=%4", "counters?path=%4g",
                     "counters?depth=1&path=x", "counters?path=x&consistency=none",
                     "counters?" + "&".join(257 * ["path=x"]), "counters?path=" + 3000 * "x",
                     "tree?depth=-1", "tree?depth=1&depth=1", "tree?limit=0", "tree?limit=10001",
                     "tree?cursor=", "tree?cursor=0", "tree?cursor=zz", "tree?cursor=00", "tree?cursor=" + 2000 * "0",
                     "tree?path=a&path=b", "quota/explain", "quota/explain?path=a//b", "quota/explain?depth=1"):
            self.assertIn("error", self.json("/api/v1/" + path, 400), path)
        self.assertIn("means nothing here: pat", self.json("/api/v1/counters?pat=x", 400)["error"])
        self.assertIn("means nothing here", self.json("/api/v1/counters?%ff=x", 400)["error"])
        self.json("/api/v1", 404)
        self.json("/api/v1/treee", 404)

    def test_health(self):
        self.assertEqual(self.daemon.get("/healthz").body, b"ok\n")
        self.assertEqual(self.daemon.get("/readyz").body, b"ready\n")
        self.assertIn(b"/metrics", self.daemon.get("/").body)

    def test_only_to_read(self):
        before = self.daemon.get("/api/v1/tree?path=requests&consistency=exact").body
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            for path in ("/metrics", "/api/v1/tree", "/healthz", "/"):
                reply = self.daemon.get(path, method, Content_Length="0")
                self.assertEqual((reply.status, reply.headers["allow"]), (405, "GET, HEAD"))
        reply = Reply(self.daemon.raw(b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"))
        self.assertEqual(reply.status, 405)
        self.assertEqual(self.daemon.get("/x", "BREW").status, 501)
        after = self.daemon.get("/api/v1/tree?path=requests&consistency=exact").body
        self.assertEqual(json.loads(before)["counters"], json.loads(after)["counters"])


class Hosts(unittest.TestCase):
    """A page of a stranger's whose name leads to 127.0.0.1 reads nothing."""

    def test_names(self):
        daemon = Daemon("listen = http:[::1]:0" if has_ipv6_loopback() else "")
        daemon.add({"x": 1})
        ports = [("127.0.0.1", daemon.port)]
        ports += [("::1", int(port)) for port in re.findall(r"listening on http:\[::1\]:(\d+)", daemon.log())]
        for host, port in ports:
            for path in ("/metrics", "/api/v1/tree", "/healthz", "/nothing"):
                for name in ("evil.example", "evil.example:%d" % port, "127.0.0.1.evil.example", "\xff.\xfe", "a.b:c:1"):
                    reply = self.ask((host, port), path, b"Host: %s\r\n" % name.encode("latin-1"))
                    self.assertEqual(reply.status, 403, name)
                    self.assertIn(b"localhost", reply.body)
            for head in (b"", b"Host:\r\n", b"Host: localhost\r\n", b"Host: LocalHost.:%d\r\n" % port,
                         b"Host: 127.0.0.1:%d\r\n" % port, b"Host: [::1]:%d\r\n" % port, b"Host: here\r\n"):
                self.assertEqual(self.ask((host, port), "/metrics", head).status, 200, head)
        daemon.stop()

    def ask(self, address, path, head):
        with socket.create_connection(address, PATIENCE) as connection:
            connection.sendall(b"GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (path.encode(), head))
            return Reply(read_all(connection))


class Malice(Case):
    daemon_lines = "http_timeout = 300ms"

    def expect_alive(self):
        self.assertEqual(self.daemon.get("/healthz").status, 200)

    def test_pipelined(self):
        paths = ["/healthz", "/metrics", "/nothing", "/api/v1/tree", "/readyz"] * 20
        text = self.daemon.raw(b"".join(b"GET %s HTTP/1.1\r\n\r\n" % path.encode() for path in paths[:-1]) +
                               b"GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n")
        for path in paths:
            reply = Reply(text)
            self.assertEqual(reply.status, 404 if path == "/nothing" else 200)
            text = reply.rest
        self.assertEqual(text, b"")

    def test_large_headers(self):
        for size in (12000, 24000, 1 << 20):
            for head in (b"GET /" + size * b"x" + b" HTTP/1.1\r\n\r\n",
                         b"GET / HTTP/1.1\r\nA: " + size * b"x" + b"\r\n\r\n",
                         b"GET / HTTP/1.1\r\n" + size // 8 * b"A: bcd\r\n" + b"\r\n"):
                with self.daemon.connect() as connection:
                    try:
                        connection.sendall(head[:-2] + b"Connection: close\r\n\r\n" if size == 12000 else head)
                        text = read_all(connection)
                    except (BrokenPipeError, ConnectionResetError):
                        text = b""
                    if text:
                        self.assertIn(Reply(text).status, (200, 404) if size == 12000 else (400, 413))
        self.expect_alive()

    def test_large_body(self):
        for size, status in ((65536, 405), (65537, 413), (1 << 40, 413)):
            with self.daemon.connect() as connection:
                connection.sendall(b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size)
                try:
                    connection.sendall(min(size, 100000) * b"x")
                except (BrokenPipeError, ConnectionResetError):
                    pass
                text = read_all(connection)
                if text:
                    self.assertEqual(Reply(text).status, status)
                else:
                    self.assertGreater(size, 65536)
        self.expect_alive()

    def test_half_open(self):
        """What never becomes a request is closed, and nothing is sent."""
        for part in (b"", b"G", b"GET /metrics HTTP/1.1", b"GET / HTTP/1.1\r\nHost:", b"GET / HTTP/1.1\r\nA: b\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"):
            with self.daemon.connect() as connection:
                connection.sendall(part)
                self.assertEqual(read_all(connection), b"")
        self.expect_alive()

    def test_nonsense(self):
        for text in (b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
                     b"GET /%zz HTTP/1.1\r\nConnection: close\r\n\r\n",
                     b"GET /\xff\xfe HTTP/1.1\r\nConnection: close\r\n\r\n",
                     b"GET http://[::1/metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
                     b"GET //metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
                     b"GET /metrics/../api HTTP/1.1\r\nConnection: close\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
                     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n-1\r\n\r\n",
                     b"CONNECT localhost:1 HTTP/1.1\r\n\r\n"):
            reply = self.daemon.raw(text)
            if reply:
                self.assertNotEqual(Reply(reply).status, 200, (text, reply))
            self.expect_alive()
        absolute = Reply(self.daemon.raw(b"GET http://x/healthz HTTP/1.1\r\nConnection: close\r\n\r\n"))
        self.assertEqual(absolute.body, b"ok\n")

    def test_random(self):
        seed = int(os.environ.get("RATION_SEED", random.randrange(1 << 32)))
        print("RATION_SEED=%d" % seed)
        chance = random.Random(seed)
        words = [b"GET ", b"POST ", b"/metrics", b"/api/v1/tree?", b" HTTP/1.1", b"\r\n", b"\r\n\r\n", b"\n", b": ", b"%",
                 b"Accept: ", b"Content-Length: ", b"Transfer-Encoding: chunked", b"q=0.", b"1", b"&path=", b"\0", b"\xff"]
        for _ in range(60):
            connections = [self.daemon.connect() for _ in range(10)]
            for connection in connections:
                connection.sendall(b"".join(chance.choice(words) for _ in range(chance.randrange(40))))
                if chance.randrange(2):
                    # Gone without a word, with a reset.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.close()
                else:
                    connection.shutdown(socket.SHUT_WR)
            for connection in connections:
                connection.close()
            self.expect_alive()


class Connections(unittest.TestCase):
    def test_idle(self):
        daemon = Daemon()
        idle = [daemon.connect() for _ in range(500)]
        for connection in idle[::2]:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        self.assertIn("rationd_counters 0\n", daemon.metrics())
        daemon.add({"x": 1})
        self.assertIn("x_total 1\n", daemon.metrics())
        for connection in idle[::2]:
            connection.sendall(b" x\r\nConnection: close\r\n\r\n")
            self.assertEqual(Reply(read_all(connection)).status, 200)
        for connection in idle:
            connection.close()
        daemon.stop()

    def test_too_many(self):
        """Who comes when there are as many as there may be waits until one is gone."""
        daemon = Daemon("http_max_connections = 10\nhttp_timeout = 1h")
        idle = []
        for _ in range(10):
            idle.append(daemon.connect())
            idle[-1].sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            self.assertIn(b"ok\n", idle[-1].recv(1000))
        late = daemon.connect()
        late.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        late.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            late.recv(1000)
        idle[3].close()
        late.settimeout(60)
        self.assertIn(b"ok\n", late.recv(1000))
        for connection in idle + [late]:
            connection.close()
        wait(lambda: daemon.get("/healthz").status == 200)
        daemon.stop()

    def test_out_of_files(self):
        """No file descriptors: it waits for some, and does not spin."""
        daemon = Daemon("http_timeout = 1h\nworkers = 1")
        os.system("prlimit --pid %d --nofile=48:48" % daemon.process.pid)
        crowd = [daemon.connect() for _ in range(80)]
        daemon.await_log("can't accept a connection")
        for connection in crowd:
            connection.close()
        wait(lambda: daemon.get("/healthz").status == 200)
        daemon.stop()

    def test_stop(self):
        """Idle connections don't hold up a stop, and no socket no thread."""
        daemon = Daemon()
        idle = [daemon.connect() for _ in range(10)]
        daemon.stop()
        for connection in idle:
            self.assertEqual(read_all(connection), b"")
            connection.close()

    def test_reload(self):
        daemon = Daemon(more="[metric x]\nhelp = Before.\n")
        daemon.add({"x/a/b": 1})
        self.assertIn('# HELP x_total Before.\n# TYPE x_total counter\nx_total{path="a/b"} 1\n', daemon.metrics())
        daemon.configure(more="[metric x]\nhelp = After.\nlevels = one two\nunit = bytes\n")
        daemon.ctl("reload")
        self.assertIn('# HELP x_bytes_total After.\n# TYPE x_bytes_total counter\n'
                      'x_bytes_total{one="a",two="b"} 1\n', daemon.metrics())
        daemon.stop()


if __name__ == "__main__":
    unittest.main(verbosity=1)
