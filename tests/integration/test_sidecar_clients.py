"""Clients and servers of others through the sidecar, unmodified: gRPC (@grpc/grpc-js and grpc++),
WebSocket (ws), Chromium, wrk and h2load; and refusals that reach curl while it uploads."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import unittest

import http2_frames as h2
from browser import open_page
from harness import INTEGRATION, Sidecar, require, require_found, run, until
from test_sidecar_tls import Certificates, OnlyTls, echo_fields
from upstreams import Nginx, Upstream

NOT_FOUND = """domain: default
descriptors:
  - key: client
    rate_limit: {requests_per_unit: 100, unit: hour, count: {grpc_status: [NOT_FOUND]}}
"""
GRPC_CLIENT = os.environ.get("GRPC_CLIENT") or os.path.join(INTEGRATION, "../../build/dev/tests/grpc_client/grpc_client")


def start_node(test, script):
    """Starts a script that prints its port first, and returns the process and the port."""
    require("node")
    require_found({"packages of npm": os.path.isdir(os.path.join(INTEGRATION, "node_modules", "ws"))})
    process = test.enterContext(
        subprocess.Popen(["node", os.path.join(INTEGRATION, script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    test.addCleanup(process.kill)
    return process, int(process.stdout.readline())


class Grpc(unittest.TestCase):
    def setUp(self):
        self.server, port = start_node(self, "sidecar_grpc.mjs")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        rules = os.path.join(folder, "rules.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(NOT_FOUND)
        sidecar = Sidecar(port, scheme="h2c", capacity=20, args=("--cycle", "1h", "--rules", rules))
        self.sidecar = self.enterContext(sidecar)

    def check(self, got):
        self.assertEqual(got["large"], 1 << 20)
        self.assertEqual((got["missing"]["code"], got["missing"]["details"]), (5, "no such thing"))
        self.assertEqual(got["deadline"], 4)
        self.assertEqual(got["count"], {"texts": [str(i) for i in range(1000)], "code": 0})
        self.assertEqual(got["chat"], {"texts": ["a", "b", "c"], "code": 0})
        # RESOURCE_EXHAUSTED
        self.assertEqual(got["refused"]["code"], 8)
        # The rule counts the call that was not found, and calls that end before their answer, by a
        # deadline or cancelled.
        returned = 'headgate_size_units_total{event="returned"}'
        least = 17 if "cancelled" in got else 18
        until(lambda: least <= self.sidecar.metric(returned) <= 18, 10, "the others are given back")

    def test_grpc_js(self):
        self.server.stdin.write(f"{self.sidecar.port}\n")
        self.server.stdin.flush()
        got = json.loads(self.server.stdout.readline())
        self.assertEqual(got["unary"], {"code": 0, "reply": "hello", "trailer": "at the end"})
        self.check(got)

    def test_grpc_cpp(self):
        done = run(GRPC_CLIENT, f"127.0.0.1:{self.sidecar.port}")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        unary = {"code": 0, "details": "", "reply": "hello", "trailer": "at the end", "echo": "who is there"}
        self.assertEqual(got["unary"], unary)
        self.assertEqual(got["cancelled"], 1)
        self.check(got)
        gone = 'headgate_proxy_requests_total{outcome="client_gone"}'
        until(lambda: self.sidecar.metric(gone) >= 1, 10, "the call that was cancelled has ended")
        until(lambda: self.sidecar.metric("headgate_proxy_in_flight") == 0, 10, "all calls have ended")


class GrpcKeepalive(unittest.TestCase):
    """PINGs keep a connection between two calls, but not a stream on which nothing moves (docs/guides/sidecar.md)."""

    def test_a_silent_connection_stays_and_a_silent_stream_ends(self):
        server, port = start_node(self, "sidecar_keepalive.mjs")
        sidecar = self.enterContext(Sidecar(port, scheme="h2c", args=("--idle-timeout", "1s")))
        accepted = lambda: sidecar.metric("headgate_connections_accepted_total")
        before = accepted()
        by_metric = accepted() - before  # the connection of this question
        server.stdin.write(f"{sidecar.port}\n")
        server.stdin.flush()
        # 14: UNAVAILABLE
        expected = {"first": "hello", "afterSilence": "hello", "silentStream": 14, "afterStream": "hello", "talkingStream": [0, 8]}
        self.assertEqual(json.loads(server.stdout.readline()), expected)
        self.assertEqual(accepted() - before - 2 * by_metric, 1, "one connection has had all calls")


class Latin1(unittest.TestCase):
    """Values that are not UTF-8 pass in both directions, between all versions of HTTP (RFC 9113, 8.2.1)."""

    def check(self, sidecar, *words):
        done = subprocess.run(
            ("curl", "--silent", "--include", "--max-time", "10", "-H", "X-Client-Id: ann", *words, "-H", b"X-Name: caf\xe9\xff",
             f"http://127.0.0.1:{sidecar.port}/"), capture_output=True, check=True)
        head = done.stdout.lower()
        self.assertIn(b" 200", head.splitlines()[0])
        self.assertIn(b"x-name: caf\xe9\r\n", head)
        self.assertIn(b"x-sent: 636166e9ff\r\n", head)

    def test_servers_of_node(self):
        server, http2 = start_node(self, "sidecar_latin1.mjs")
        http1 = int(server.stdout.readline())
        for upstream in ({"port": http2, "scheme": "h2c"}, {"port": http1}):
            sidecar = self.enterContext(Sidecar(upstream.pop("port"), **upstream))
            for version in ("--http2-prior-knowledge", "--http1.1"):
                with self.subTest(upstream=upstream, version=version):
                    self.check(sidecar, version)


class WebSocket(unittest.TestCase):
    def test_ws(self):
        server, port = start_node(self, "sidecar_websocket.mjs")
        sidecar = self.enterContext(Sidecar(port))
        server.stdin.write(f"{sidecar.port}\n")
        server.stdin.flush()
        self.assertEqual(
            json.loads(server.stdout.readline()),
            {"text": "hello", "large": True, "inOrder": True, "pong": "are you there", "close": [4000, "done"], "refused": 429},
        )


class EarlyAnswers(Certificates):
    """Uploads over HTTP/2 that are refused while the client sends them: the client gets the refusal."""

    ARGS = ("--cycle", "1h")

    def setUp(self):
        super().setUp()
        self.upstream = Upstream(self, echo_fields)
        self.files = {}
        for size in (10 << 10, 64 << 10, 1 << 20, 100 << 20):
            self.files[size] = os.path.join(self.folder, str(size))
            with open(self.files[size], "wb") as file:
                file.truncate(size)

    def refused(self, size, *words):
        """The refusal that curl prints. Without a file, the upload has no known length."""
        with open(self.files[size], "rb") as file:
            words = ("--max-time", "30", "--cacert", self.authority.file, "-H", "X-Client-Id: ann", *words)
            done = run("curl", "--silent", "--show-error", "--write-out", "\n%{http_code} %{http_version}", *words, stdin=file)
        self.assertEqual(done.returncode, 0, done.stderr)
        *body, last = done.stdout.splitlines()
        self.assertEqual(last, "429 2")
        self.assertEqual(json.loads("".join(body))["status"], 429)

    def check(self, *url):
        for size, path in self.files.items():
            for words in (("--upload-file", path), ("--upload-file", "-"), ("--data-binary", f"@{path}")):
                with self.subTest(size=size, words=words):
                    self.refused(size, *words, *url)
        until(lambda: self.sidecar.metric("headgate_proxy_in_flight") == 0, 10, "all requests have ended")

    def test_curl(self):
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=self.ARGS, capacity=1))
        self.assertEqual(self.sidecar.request("GET", "/", headers={"X-Client-Id": "ann"})[0], 200)
        self.check("--http2-prior-knowledge", f"http://127.0.0.1:{self.sidecar.port}/")

    def test_curl_by_tls(self):
        tls = ("--tls-certificate-file", self.certificate, "--tls-key-file", self.key)
        self.sidecar = self.enterContext(OnlyTls(self.upstream.port, *tls, *self.ARGS, capacity=1))
        url = f"https://localhost:{self.sidecar.port}/"
        self.curl("-H", "X-Client-Id: ann", url)
        self.check("--http2", url)

    def frames(self, connection):
        """The kind, flags and payload of each frame, to the end of the connection. PINGs are answered."""
        with connection.makefile("rb") as file:
            while header := file.read(9):
                size, kind, flags, _ = h2.parse_frame_header(header)
                payload = file.read(size)
                if kind == h2.PING:
                    connection.sendall(h2.frame(h2.PING, h2.ACK, 0, payload))
                yield kind, flags, payload

    def test_a_client_that_goes_silent_is_reset_also_in_a_drain(self):
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=self.ARGS, capacity=1))
        self.assertEqual(self.sidecar.request("GET", "/", headers={"X-Client-Id": "ann"})[0], 200)
        end_of_answer = (h2.DATA, h2.END_STREAM)
        with socket.create_connection(("127.0.0.1", self.sidecar.port), timeout=30) as connection:
            frames = self.frames(connection)
            connection.sendall(h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0))
            connection.sendall(h2.headers(1, flags=0, method="POST", x_client_id="ann"))
            self.assertTrue(any(frame[:2] == end_of_answer for frame in frames))
            self.assertEqual(next(frames), (h2.RST_STREAM, 0, h2.reset(1, h2.NO_ERROR)[9:]))
            connection.sendall(h2.headers(3, flags=0, method="POST", x_client_id="ann"))
            self.assertTrue(any(frame[:2] == end_of_answer for frame in frames))
            self.sidecar.process.send_signal(signal.SIGTERM)
            kinds = [kind for kind, _, _ in frames]
        self.assertCountEqual(kinds, [h2.GOAWAY, h2.PING, h2.GOAWAY, h2.RST_STREAM])
        self.assertEqual(self.sidecar.process.wait(30), 0)

    def test_h2load(self):
        """h2load sends its whole body, and counts a stream as done only at its end."""
        require("h2load")
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=self.ARGS, capacity=1))
        self.assertEqual(self.sidecar.request("GET", "/", headers={"X-Client-Id": "ann"})[0], 200)
        words = ("-n", "200", "-c", "4", "-m", "10", "-H", "X-Client-Id: ann", "-d", self.files[1 << 20])
        done = run("h2load", *words, f"http://127.0.0.1:{self.sidecar.port}/", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("200 done", done.stdout)
        self.assertIn(" 200 4xx", done.stdout)


class Browser(Certificates):
    """Chromium opens a page of the upstream through the sidecar. The page cannot name a client in its first
    request, nor in the handshake of a WebSocket, so the address is the client."""

    ARGS = ("--client-header", "none", "--cycle", "1h")
    CAPACITY = 40

    def browse(self, server, url):
        """The findings of the page."""
        open_page(self, url)
        ready, _, _ = select.select([server.stdout], [], [], 60)
        self.assertTrue(ready, "the page says what it has found")
        return json.loads(server.stdout.readline())

    def check(self, got, protocol):
        self.assertEqual(
            got,
            {
                "download": 8 << 20,
                "upload": True,
                "socket": {"text": "hello", "large": True, "code": 4000, "reason": "done"},
                "refusal": {"status": 429, "retryAfter": True, "rateLimit": True},
                "protocols": [protocol],
            },
        )

    def test_http1(self):
        server, port = start_node(self, "sidecar_browser.mjs")
        sidecar = self.enterContext(Sidecar(port, args=self.ARGS, capacity=self.CAPACITY))
        self.check(self.browse(server, f"http://127.0.0.1:{sidecar.port}/"), "http/1.1")

    def test_http2_by_tls(self):
        server, port = start_node(self, "sidecar_browser.mjs")
        files = ("--tls-certificate-file", self.certificate, "--tls-key-file", self.key)
        sidecar = self.enterContext(OnlyTls(port, *self.ARGS, *files, capacity=self.CAPACITY))
        self.check(self.browse(server, f"https://127.0.0.1:{sidecar.port}/"), "h2")


class LoadGenerators(unittest.TestCase):
    """They send as fast as they can, over several connections, and check what they get."""

    def setUp(self):
        self.nginx = Nginx(self)
        self.sidecar = self.enterContext(Sidecar(self.nginx.port, capacity=100_000_000))
        self.url = f"http://127.0.0.1:{self.sidecar.port}/small"

    def answered(self):
        return self.sidecar.metric('headgate_proxy_requests_total{outcome="answered"}')

    def test_wrk(self):
        require("wrk")
        done = run("wrk", "-t", "1", "-c", "16", "-d", "1s", "-H", "X-Client-Id: ann", self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Socket errors", done.stdout)
        self.assertNotIn("Non-2xx", done.stdout)
        requests = int(re.search(r"(\d+) requests in", done.stdout).group(1))
        self.assertGreater(requests, 0)
        # Requests that were open at the end are not in its count.
        until(lambda: requests <= self.answered() <= requests + 16, 10, "the sidecar has counted the same")

    def test_h2load(self):
        require("h2load")
        for words in ((), ("--h1",)):
            with self.subTest(words):
                before = self.answered()
                done = run("h2load", *words, "-n", "2000", "-c", "4", "-m", "8", "-H", "X-Client-Id: ann", self.url)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("2000 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)
                self.assertIn("status codes: 2000 2xx", done.stdout)
                until(lambda: self.answered() - before == 2000, 10, "the sidecar has counted the same")


if __name__ == "__main__":
    unittest.main()
