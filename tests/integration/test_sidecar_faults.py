"""The sidecar while the network or its upstreams fail: no client gets a wrong answer, and the
sidecar recovers."""

import http.client
import socket
import subprocess
import threading
import unittest

from gate import Gate
from harness import START_SECONDS, Sidecar, free_port, read_all, require, run, until
from upstreams import Nginx, Upstream

CLIENT = {"X-Client-Id": "ann"}
BROKEN = (http.client.HTTPException, ConnectionError)


class BehindAGate(unittest.TestCase):
    """The gate stands between the sidecar and nginx."""

    def setUp(self):
        self.nginx = Nginx(self)
        with open(self.nginx.path("page"), "wb") as file:
            file.write(b"0123456789" * 50_000)
        self.gate = self.enterContext(Gate(self.nginx.port))
        self.sidecar = self.enterContext(Sidecar(self.gate.port, args=("--answer-timeout", "500ms", "--threads", "1")))

    def get(self, path="/small"):
        return self.sidecar.request("GET", path, headers=CLIENT)

    def recovers(self):
        self.gate.heal()
        until(lambda: self.get()[0] == 200, 10, "the sidecar answers again")

    def test_pieces_of_one_byte(self):
        self.gate.slice_bytes = 1
        for _ in range(3):
            self.assertEqual(self.get()[2], "hello\n")

    def test_cut_connections_are_502_until_the_upstream_is_back(self):
        self.assertEqual(self.get()[0], 200)
        self.gate.cut()
        self.assertEqual(self.get()[0], 502)
        self.recovers()

    def test_reset_in_the_head_is_502(self):
        self.gate.reset(after_bytes=7)
        self.assertEqual(self.get()[0], 502)
        self.recovers()

    def test_reset_in_the_body_is_no_complete_answer(self):
        self.gate.reset(after_bytes=1000)
        with self.assertRaises(BROKEN):
            self.get("/page")
        self.recovers()
        self.assertEqual(len(self.get("/page")[2]), 500_000)

    def test_stalled_answer_is_504(self):
        self.assertEqual(self.get()[0], 200)
        self.gate.hold("to_client")
        self.assertEqual(self.get()[0], 504)
        self.recovers()

    def test_corrupt_answer_is_502(self):
        self.gate.corrupt(1)
        status, fields, _ = self.get()
        self.assertEqual(status, 502)
        self.assertEqual(fields["proxy-status"], "headgate; error=http_protocol_error")
        self.recovers()


class SeveralUpstreams(unittest.TestCase):
    def test_an_upstream_that_is_down_is_avoided(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True

        upstream = Upstream(self, serve)
        sidecar = self.enterContext(Sidecar(free_port(), upstream.port, args=("--threads", "1")))
        for _ in range(50):
            self.assertEqual(sidecar.request("POST", "/", headers=CLIENT)[0], 200)
        self.assertGreaterEqual(sidecar.metric("headgate_upstream_out_total"), 1)

    def test_an_upstream_whose_checks_fail_gets_no_requests(self):
        well = threading.Event()

        def serve(name):
            def answer(connection, head):
                failing = head.startswith("GET /healthz ") and name == "sick" and not well.is_set()
                status = "503 Service Unavailable" if failing else "200 OK"
                connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(name)}\r\n\r\n{name}".encode())
                return True

            return answer

        sick, healthy = Upstream(self, serve("sick")), Upstream(self, serve("healthy"))
        checks = ("--check-path", "/healthz", "--check-interval", "200ms", "--threads", "1")
        sidecar = self.enterContext(Sidecar(sick.port, healthy.port, args=checks))
        failed = 'headgate_upstream_checks_total{result="failed"}'
        until(lambda: sidecar.metric(failed) >= 2, 10, "two checks have failed")
        names = {sidecar.request("GET", "/", headers=CLIENT)[2] for _ in range(20)}
        self.assertEqual(names, {"healthy"})
        well.set()
        until(lambda: sidecar.request("GET", "/", headers=CLIENT)[2] == "sick", 10, "the upstream gets requests again")

    def test_if_all_checks_fail_requests_go_on(self):
        def serve(connection, head):
            status = "503 Service Unavailable" if head.startswith("GET /healthz ") else "200 OK"
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
            return True

        ports = [Upstream(self, serve).port for _ in range(2)]
        checks = ("--check-path", "/healthz", "--check-interval", "200ms", "--threads", "1")
        sidecar = self.enterContext(Sidecar(*ports, args=checks))
        until(lambda: sidecar.metric('headgate_upstream_checks_total{result="failed"}') >= 6, 10, "all have failed twice")
        for _ in range(5):
            self.assertEqual(sidecar.request("POST", "/", headers=CLIENT)[0], 200)
        self.assertEqual(sidecar.request("GET", "/readyz", port=sidecar.admin_port)[0], 200)

    def test_requests_are_spread(self):
        def serve_slowly(connection, _):
            until(lambda: len(first.heads) + len(second.heads) >= 8, 10, "all requests have arrived")
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True

        first, second = Upstream(self, serve_slowly), Upstream(self, serve_slowly)
        sidecar = self.enterContext(Sidecar(first.port, second.port, args=("--threads", "1")))
        connections = [http.client.HTTPConnection("127.0.0.1", sidecar.port, timeout=15) for _ in range(8)]
        for connection in connections:
            connection.request("GET", "/", headers=CLIENT)
        self.assertEqual([connection.getresponse().status for connection in connections], 8 * [200])
        for connection in connections:
            connection.close()
        self.assertEqual((len(first.heads), len(second.heads)), (4, 4))


class Http2Upstream(unittest.TestCase):
    def setUp(self):
        require("nghttpd", "curl")
        self.port = free_port()
        self.nginx = Nginx(self)  # for its folder
        with open(self.nginx.path("page"), "wb") as file:
            file.write(b"0123456789" * 500_000)
        self.process = subprocess.Popen(
            ("nghttpd", "--no-tls", "--address=127.0.0.1", "--htdocs", self.nginx.path(""), "--trailer", "x-end: 1", "--echo-upload", str(self.port)),
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(self.process.wait, timeout=START_SECONDS)
        self.addCleanup(self.process.terminate)
        self.start()

    def start(self):
        self.sidecar = self.enterContext(Sidecar(self.port, scheme="h2c"))
        until(lambda: self.sidecar.request("GET", "/page", headers=CLIENT)[0] == 200, START_SECONDS, "nghttpd answers")

    def test_both_versions_of_clients(self):
        for version in ("--http1.1", "--http2-prior-knowledge"):
            with self.subTest(version):
                words = ("curl", "--silent", "--show-error", version, "-H", "X-Client-Id: ann")
                url = f"http://127.0.0.1:{self.sidecar.port}"
                down = run(*words, f"{url}/page")
                self.assertEqual(down.stdout, "0123456789" * 500_000)
                echo = run(*words, "--data-binary", f"@{self.nginx.path('page')}", f"{url}/page")
                self.assertEqual(echo.stdout, "0123456789" * 500_000, echo.stderr)
                head = run(*words, "--head", f"{url}/page").stdout
                self.assertIn("content-length: 5000000\n", head.lower())

    def test_many_requests_share_a_connection(self):
        require("h2load")
        url = f"http://127.0.0.1:{self.sidecar.port}/page"
        done = run("h2load", "-n", "64", "-c", "4", "-m", "8", "-H", "X-Client-Id: ann", url)
        self.assertIn("64 succeeded, 0 failed", done.stdout)
        self.assertLessEqual(self.sidecar.metric("headgate_upstream_connections"), 8)

    def test_tunnel_that_the_upstream_does_not_take_is_501(self):
        # nghttpd does not announce SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441).
        ask = (
            b"GET /page HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        with self.sidecar.connect() as client:
            client.sendall(ask.replace(b"Upgrade\r\n", b"Upgrade, close\r\n", 1))
            answer = read_all(client)
        self.assertTrue(answer.startswith(b"HTTP/1.1 501 "), answer)
        self.assertIn(b"takes no tunnels over HTTP/2", answer)
        outcomes = 'headgate_proxy_requests_total{outcome="%s"}'
        self.assertEqual(self.sidecar.metric(outcomes % "unsuitable"), 1)
        self.assertEqual(self.sidecar.metric(outcomes % "broken"), 0)

    def test_upstream_that_is_down_is_502(self):
        self.process.terminate()
        self.process.wait()
        self.assertEqual(self.sidecar.request("GET", "/page", headers=CLIENT)[0], 502)


class Http2BehindAGate(Http2Upstream):
    """The gate stands between the sidecar and nghttpd."""

    def start(self):
        self.gate = self.enterContext(Gate(self.port))
        args = ("--answer-timeout", "500ms", "--threads", "1")
        self.sidecar = self.enterContext(Sidecar(self.gate.port, scheme="h2c", args=args))
        until(lambda: self.get()[0] == 200, START_SECONDS, "nghttpd answers")

    def get(self):
        return self.sidecar.request("GET", "/page", headers=CLIENT)

    def recovers(self):
        self.gate.heal()
        until(lambda: self.get()[0] == 200, 10, "the sidecar answers again")
        self.assertEqual(self.get()[2], "0123456789" * 500_000)

    def test_small_pieces(self):
        self.gate.slice_bytes = 1000
        self.assertEqual(self.get()[2], "0123456789" * 500_000)

    def test_cut_connections_are_502_until_the_upstream_is_back(self):
        self.gate.cut()
        self.assertEqual(self.get()[0], 502)
        self.recovers()

    def test_reset_in_the_body_is_no_complete_answer(self):
        self.gate.reset(after_bytes=100_000)
        with self.assertRaises(BROKEN):
            self.get()
        self.recovers()

    def test_stalled_answer_is_504(self):
        self.gate.hold("to_client")
        self.assertEqual(self.get()[0], 504)
        self.recovers()

    def test_corrupt_frame_is_502_or_no_complete_answer(self):
        # The first byte belongs to the length of a frame.
        self.gate.corrupt(1)
        try:
            self.assertEqual(self.get()[0], 502)
        except BROKEN:
            pass
        self.recovers()


if __name__ == "__main__":
    unittest.main()
