"""The sidecar between real clients and real upstreams: curl and raw sockets, nginx and a server of
the test that says exactly what the test wants."""

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import tempfile
import threading
import unittest

from harness import Sidecar, free_port, read_all, run, until
from http2_frames import GOAWAY, NO_ERROR, PREFACE, SETTINGS, frame
from upstreams import Nginx, Upstream, read_exactly, read_head

MIB = 1 << 20
CLIENT = {"X-Client-Id": "ann"}


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def peak_memory(process):
    """VmHWM of the process, in bytes."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) << 10


class WithNginx(unittest.TestCase):
    def setUp(self):
        self.nginx = Nginx(self)
        self.sidecar = self.enterContext(Sidecar(self.nginx.port))
        self.url = f"http://127.0.0.1:{self.sidecar.port}"

    def curl(self, *words):
        done = run("curl", "--silent", "--show-error", "--max-time", "60", "-H", "X-Client-Id: ann", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def big_file(self, name="big", size=50 * MIB):
        with open(self.nginx.path(name), "wb") as file:
            file.write(os.urandom(size))
        return self.nginx.path(name)

    def test_get_head_and_204(self):
        for version in ("--http1.1", "--http2-prior-knowledge"):
            with self.subTest(version):
                self.assertEqual(self.curl(version, f"{self.url}/small"), "hello\n")
                head = self.curl(version, "--head", f"{self.url}/small").lower()
                self.assertRegex(head, r"^http/\S+ 200")
                self.assertIn("\ncontent-length: 6\n", head)
                nothing = self.curl(version, "--include", f"{self.url}/nothing").lower()
                self.assertRegex(nothing, r"^http/\S+ 204")
                self.assertNotIn("content-length", nothing)
                self.assertTrue(nothing.endswith("\n\n"))

    def test_not_modified_has_no_body(self):
        self.big_file("page", 1000)
        fields = self.sidecar.request("HEAD", "/page", headers=CLIENT)[1]
        answer = self.curl("--include", "-H", f"If-None-Match: {fields['etag']}", f"{self.url}/page")
        self.assertTrue(answer.startswith("HTTP/1.1 304 "))
        self.assertTrue(answer.endswith("\n\n"))

    def test_large_bodies_in_both_directions_do_not_gather_in_memory(self):
        path = self.big_file()
        self.curl(f"{self.url}/small")
        before = peak_memory(self.sidecar.process)
        for version in ("--http1.1", "--http2-prior-knowledge"):
            with self.subTest(version):
                down = os.path.join(self.nginx.folder, "down")
                self.curl(version, "--output", down, f"{self.url}/big")
                self.assertEqual(sha256(down), sha256(path))
                # With a length, and in chunks.
                for number, words in enumerate(((), ("-H", "Transfer-Encoding: chunked"))):
                    if words and version != "--http1.1":
                        continue
                    name = f"put/up{number}{version}"
                    self.curl(version, *words, "--upload-file", path, f"{self.url}/{name}")
                    self.assertEqual(sha256(self.nginx.path(name)), sha256(path))
        self.assertLess(peak_memory(self.sidecar.process) - before, 4 * MIB)

    def test_slow_reader_holds_up_neither_the_others_nor_memory(self):
        self.big_file()
        before = peak_memory(self.sidecar.process)
        with self.sidecar.connect() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n")
            for _ in range(20):
                self.assertEqual(self.curl(f"{self.url}/small"), "hello\n")
        self.assertLess(peak_memory(self.sidecar.process) - before, 4 * MIB)


class WithUpstream(unittest.TestCase):
    def start(self, serve, *args):
        self.upstream = Upstream(self, serve)
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=args))

    def ask(self, request):
        """Sends bytes, and returns all bytes of the answer up to the end of the connection."""
        with self.sidecar.connect() as connection:
            connection.sendall(request)
            return read_all(connection)

    def test_fields_on_the_way(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n")
            return True

        self.start(serve)
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        status, fields, _ = self.sidecar.request(
            "GET", "/a%20b?q=1", headers={**CLIENT, "Connection": "x-hop", "X-Hop": "1", "traceparent": trace, "Via": "1.0 a"}
        )
        self.assertEqual(status, 200)
        self.assertNotIn("x-hop", fields)
        self.assertEqual(fields["x-end"], "2")
        lines = self.upstream.heads[0].split("\r\n")
        self.assertEqual(lines[0], "GET /a%20b?q=1 HTTP/1.1")
        self.assertEqual(lines[1], f"Host: 127.0.0.1:{self.sidecar.port}")
        self.assertIn(f"traceparent: {trace}", lines)
        self.assertIn("Via: 1.0 a, 1.1 headgate", lines)
        self.assertIn("X-Forwarded-For: 127.0.0.1", lines)
        self.assertIn("X-Forwarded-Proto: http", lines)
        self.assertNotIn("x-hop", self.upstream.heads[0].lower())

    def test_a_request_without_a_host_gets_the_upstreams(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            return True

        self.start(serve)
        answer = self.ask(b"GET / HTTP/1.0\r\nX-Client-Id: ann\r\n\r\n")
        self.assertIn(b" 204 No Content\r\n", answer)
        self.assertIn(f"\r\nHost: 127.0.0.1:{self.upstream.port}\r\n", self.upstream.heads[0])

    def test_a_silent_tunnel_ends(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
            return read_all(connection) is None

        self.start(serve, "--tunnel-idle-timeout", "500ms")
        with self.sidecar.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
            self.assertTrue(read_head(client).startswith("HTTP/1.1 101 "))
            self.assertEqual(read_all(client), b"")

    def test_chunks_and_trailers_in_both_directions(self):
        bodies = []

        def serve(connection, _):
            body = b""
            while not body.endswith(b"\r\n\r\n"):
                body += connection.recv(1000)
            bodies.append(body)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"
            )
            return False

        self.start(serve)
        answer = self.ask(
            b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nTE: trailers\r\nConnection: close, TE\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\nX-Check: 8\r\n\r\n"
        )
        self.assertTrue(bodies[0].startswith(b"2\r\nde\r\n"))
        self.assertTrue(bodies[0].endswith(b"0\r\nX-Check: 8\r\n\r\n"))
        self.assertTrue(answer.endswith(b"\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"), answer)

    def test_early_hints(self):
        def serve(connection, _):
            connection.sendall(
                b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            )
            return True

        self.start(serve)
        answer = self.ask(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nConnection: close\r\n\r\n")
        self.assertRegex(answer, rb"\AHTTP/1.1 103 [^\r]*\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\n")
        self.assertTrue(answer.endswith(b"\r\n\r\nok"))

    def test_expect_waits_for_the_upstream(self):
        def serve(connection, head):
            self.assertIn("Expect: 100-continue\r\n", head)
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = read_exactly(connection, 5)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body)
            return True

        self.start(serve)
        with self.sidecar.connect() as client:
            client.sendall(
                b"PUT / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
            )
            self.assertTrue(read_head(client).startswith("HTTP/1.1 100 Continue\r\n"))
            client.sendall(b"hello")
            answer = read_all(client)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertTrue(answer.endswith(b"hello"))

    def test_early_answer_ends_the_request(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            return False

        self.start(serve)
        with self.sidecar.connect() as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
            answer = read_all(client)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        self.assertTrue(answer.endswith(b"big"))

    def test_tunnel(self):
        def serve(connection, head):
            self.assertIn("Upgrade: chat\r\n", head)
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nwelcome")
            text = b""
            while part := connection.recv(1000):
                text += part
            # The client has closed its direction; this one is still open.
            connection.sendall(text.upper())
            return False

        self.start(serve)
        with self.sidecar.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
            self.assertTrue(read_head(client).startswith("HTTP/1.1 101 "))
            self.assertEqual(read_exactly(client, 7), b"welcome")
            client.sendall(b"abc" * 100_000)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(client), b"ABC" * 100_000)
        self.assertEqual(self.sidecar.metric("headgate_proxy_tunnels_total"), 1)

    def test_kept_connection_that_the_upstream_closes_is_no_error(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return False

        self.start(serve, "--threads", "1")
        for _ in range(20):
            self.assertEqual(self.sidecar.request("GET", "/", headers=CLIENT)[0], 200)

    def test_length_of_zero_is_no_body(self):
        seen = []

        def serve(connection, head):
            # Each connection has one answer, and closes when it is asked for another.
            if seen.count(connection) == 1:
                return False
            seen.append(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True

        self.start(serve, "--threads", "1")
        for method in ("GET", "PUT", "DELETE", "GET"):
            with self.subTest(method):
                got = self.sidecar.request(method, "/", headers=CLIENT | {"Content-Length": "0"})
                self.assertEqual(got[0], 200)
        self.assertEqual(self.sidecar.metric("headgate_proxy_retries_total"), 3)

    def is_refused(self):
        try:
            self.sidecar.connect().close()
            return False
        except OSError:
            return True

    def test_requests_in_progress_finish_when_the_process_stops(self):
        asked, may_answer = threading.Event(), threading.Event()

        def serve(connection, _):
            asked.set()
            may_answer.wait(10)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True

        self.start(serve)
        with self.sidecar.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n")
            self.assertTrue(asked.wait(10))
            self.sidecar.process.send_signal(signal.SIGTERM)
            until(self.is_refused, 10, "the sidecar takes no new connections")
            may_answer.set()
            answer = read_all(client)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        self.assertTrue(answer.endswith(b"ok"))
        self.assertEqual(self.sidecar.stop(), 0)
        self.assertIn("all_requests_finished=true", self.sidecar.errors())

    def test_gone_clients_leave_nothing_behind(self):
        def serve(connection, head):
            if head.startswith("POST"):
                while connection.recv(65536):
                    pass  # in the middle of the request
                return False
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
            connection.recv(1)
            return False

        self.start(serve, "--upstream-connections", "4", "--threads", "1")
        for method in (b"GET", b"POST"):
            clients = [self.sidecar.connect() for _ in range(12)]  # some wait for a connection
            for number, client in enumerate(clients):
                body = b"Content-Length: 100000\r\n\r\n" + b"y" * 5000 if method == b"POST" else b"\r\n"
                # One client alone does not get all connections.
                client.sendall(method + b" / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann%d\r\n" % number + body)
            until(lambda: self.sidecar.metric("headgate_upstream_connections") == 4, 10, "all connections are in use")
            # A client that only closes its direction still gets its answer; these are gone.
            for client in clients:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
            for name in ("headgate_proxy_in_flight", "headgate_upstream_queue", "headgate_upstream_connections"):
                until(lambda name=name: self.sidecar.metric(name) == 0, 10, f"{name} is 0 again")

    def test_upstream_that_is_down_is_502_with_its_reason(self):
        sidecar = self.enterContext(Sidecar(free_port()))
        status, fields, text = sidecar.request("GET", "/", headers=CLIENT)
        self.assertEqual(status, 502)
        self.assertEqual(fields["proxy-status"], "headgate; error=connection_refused")
        self.assertIn("cannot be reached", text)
        until(lambda: "upstream.failed" in sidecar.errors(), 10, "the failure is logged")
        line = next(line for line in sidecar.errors().splitlines() if "upstream.failed" in line)
        self.assertRegex(line, r' warning upstream\.failed reason="127\.0\.0\.1:\d+: Connection refused" effect="requests are answered 502 or 504" hint=')
        quiet = self.enterContext(Sidecar(free_port(), args=("--no-reason",)))
        self.assertNotIn("proxy-status", quiet.request("GET", "/", headers=CLIENT)[1])

    def test_log_has_one_line_for_an_upstream_that_fails_and_one_when_it_is_back(self):
        port = free_port()
        sidecar = self.enterContext(Sidecar(port))
        for _ in range(3):
            self.assertEqual(sidecar.request("GET", "/", headers=CLIENT)[0], 502)
        until(lambda: "upstream.failed" in sidecar.errors(), 10, "the failure is logged")
        Upstream(self, lambda connection, _: connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n"), port=port)

        def passes_again():
            sidecar.request("GET", "/", headers=CLIENT)
            return "upstream.recovered" in sidecar.errors()

        until(passes_again, 30, "the recovery is logged")
        self.assertEqual(sidecar.errors().count("upstream.failed"), 1)
        self.assertRegex(sidecar.errors(), r" info upstream\.recovered requests_failed=\d+ for=")

    def test_upstream_that_is_too_slow_is_504(self):
        def serve(connection, _):
            connection.recv(1)  # until the sidecar gives up
            return False

        self.start(serve, "--answer-timeout", "300ms")
        status, fields, _ = self.sidecar.request("GET", "/", headers=CLIENT)
        self.assertEqual(status, 504)
        self.assertEqual(fields["proxy-status"], "headgate; error=http_response_timeout")

    def test_bad_framing_of_the_upstream_is_502(self):
        for answer in (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
            b"hello\r\n\r\n",
        ):

            connections = []

            def serve(connection, _, answer=answer, connections=connections):
                connections.append(connection)
                connection.sendall(answer)
                return True

            with self.subTest(answer):
                self.start(serve)
                for asked in range(1, 4):
                    self.assertEqual(self.sidecar.request("GET", "/", headers=CLIENT)[0], 502)
                    # Each time over another connection, although the upstream has not closed any.
                    self.assertEqual(len(set(connections)), asked)

    def test_answer_that_breaks_off_breaks_off_for_the_client(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            return False

        self.start(serve)
        with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
            self.sidecar.request("GET", "/", headers=CLIENT)

    def test_invalid_request_does_not_reach_the_upstream(self):
        self.start(lambda connection, head: False)
        answer = self.ask(b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 400 "))
        answer = self.ask(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nConnection: X-Client-Id\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 400 "))
        self.assertEqual(self.upstream.heads, [])

    def test_error_in_a_later_chunk_aborts_the_request_to_the_upstream(self):
        rest = []

        def serve(connection, _):
            rest.append(read_all(connection))
            return False

        self.start(serve)
        with self.sidecar.connect() as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            until(lambda: self.upstream.heads, 10, "the head has arrived")
            connection.sendall(b"x\r\n")
            self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 400 "))
        until(lambda: rest, 10, "the connection to the upstream is closed")
        self.assertFalse(rest[0].endswith(b"0\r\n\r\n"))
        outcomes = 'headgate_proxy_requests_total{outcome="%s"}'
        self.assertEqual(self.sidecar.metric(outcomes % "malformed"), 1)
        self.assertEqual(self.sidecar.metric(outcomes % "client_gone"), 0)


class FairShare(unittest.TestCase):
    def start(self, *args):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True

        self.upstream = Upstream(self, serve)
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=args, capacity=40))

    def ask(self, client, count=1):
        """How many of these requests passed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.sidecar.port, timeout=10)
        passed = 0
        for _ in range(count):
            connection.request("GET", "/", headers={"X-Client-Id": client})
            response = connection.getresponse()
            response.read()
            passed += response.status == 200
        connection.close()
        return passed

    def capacity(self, client):
        return self.sidecar.metric(f'headgate_share_capacity{{client="{client}"}}')

    def test_capacities_follow_the_demands(self):
        """The worked example: 40 in each cycle, a reservation of 10 %, demands of four clients."""
        self.start("--cycle", "3s")
        demands = {"A": (3, 3, 0), "B": (15, 15, 15), "C": (10, 50, 50), "D": (10, 10, 5)}
        expected = {"A": (10, 5, 3, 1), "B": (10, 15, 11, 12), "C": (10, 10, 16, 22), "D": (10, 10, 10, 5)}
        for client in demands:  # all are known before the first full cycle
            self.assertEqual(self.ask(client), 1)
        demands["A"] = (2, 3, 0)
        for number in range(4):
            ends = 'headgate_share_cycles_total{reason="due"}'
            until(lambda number=number: self.sidecar.metric(ends) == number, 10, f"cycle {number + 1} begins")
            for client in "ABCD":
                self.assertEqual(self.capacity(client), expected[client][number], f"{client} in cycle {number + 1}")
            if number == 3:
                return
            for client in "ABCD":
                count = demands[client][number] - (number == 0)
                already = int(number == 0)
                passed = self.ask(client, count) + already
                self.assertEqual(passed, min(demands[client][number], expected[client][number]), f"{client} in cycle {number + 1}")

    def test_weights_divide_the_capacity(self):
        self.start("--cycle", "1h", "--client-weight", "A=3")
        self.assertEqual((self.ask("A"), self.ask("B")), (1, 1))
        self.assertEqual((self.capacity("A"), self.capacity("B")), (30, 10))
        self.assertEqual(self.ask("A", 31), 29)
        self.assertEqual(self.ask("B", 11), 9)

    def test_there_are_no_shares_until_a_capacity_is_found(self):
        self.start()
        auto = self.enterContext(Sidecar(self.upstream.port, capacity="auto"))
        self.assertEqual(auto.request("GET", "/", headers=CLIENT)[0], 200)
        self.assertEqual(auto.metric('headgate_share_requests_total{client="ann",outcome="allowed"}'), 1)
        page = auto.request("GET", "/metrics", port=auto.admin_port)[2]
        for name in ("capacity", "borrowed", "lent"):
            self.assertNotIn(f"\nheadgate_share_{name}{{", page)

    def test_clients_that_lose_their_series_do_not_count_again(self):
        """Monitoring would take their requests for new ones, and their return for a restart."""
        self.start("--cycle", "1h")
        page = lambda: self.sidecar.request("GET", "/metrics", port=self.sidecar.admin_port)[2]
        series = lambda: re.findall(r'^headgate_share_requests_total{client="(.*)",outcome=".*"} (\d+)', page(), re.M)
        for number in range(30):
            self.assertEqual(self.ask(f"m{number}"), 1)
        self.assertEqual(len(dict(series())), 30)
        for number in range(100):  # among equal demands, the names that sort first have series
            self.ask(f"a{number}")
        values = series()
        self.assertEqual(len(dict(values)), 101)
        self.assertEqual([value for client, value in values if client == ""], ["0", "0"])
        self.assertEqual(sum(int(value) for _, value in values), 100)

    def test_refusal_says_when_to_come_back(self):
        self.start("--cycle", "1h")
        self.assertEqual(self.ask("ann", 41), 40)
        status, fields, text = self.sidecar.request("GET", "/", headers={"X-Client-Id": "ann"})
        self.assertEqual(status, 429)
        retry_after = int(fields["retry-after"])
        self.assertIn(retry_after, range(3500, 3601))
        self.assertEqual(fields["ratelimit-policy"], '"fair-share";q=40;w=3600')
        self.assertEqual(fields["ratelimit"], f'"fair-share";r=0;t={retry_after}')
        self.assertIn("the client has used its share of this cycle", text)
        self.assertEqual(len(self.upstream.heads), 40)

    def test_passthrough_counts_and_lets_everything_through(self):
        self.start("--cycle", "1h", "--mode", "passthrough")
        self.assertEqual(self.ask("ann", 50), 50)
        self.assertEqual(self.sidecar.metric("headgate_share_counted_only_total"), 10)

    def change(self, body):
        status, _, text = self.sidecar.request("PATCH", "/v1/sidecar", json.dumps(body), port=self.sidecar.admin_port)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_mode_changes_without_a_restart(self):
        self.start("--cycle", "1h")
        self.assertEqual(self.ask("ann", 41), 40)
        self.assertEqual(self.change({"mode": "passthrough"})["mode"], "passthrough")
        self.assertEqual(self.ask("ann"), 1)
        self.change({"mode": "enforce"})
        self.assertEqual(self.ask("ann"), 0)

    def test_upstream_changes_without_a_restart(self):
        self.start("--mode", "passthrough")

        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew")
            return True

        new = Upstream(self, serve)
        self.assertEqual(self.ask("ann"), 1)
        self.change({"upstream": f"http://127.0.0.1:{new.port}"})
        until(lambda: self.sidecar.request("GET", "/", headers=CLIENT)[2] == "new", 10, "the new upstream answers")
        before = len(self.upstream.heads)
        self.assertEqual(self.ask("ann", 20), 20)
        self.assertEqual(len(self.upstream.heads), before)

    def test_an_upstream_without_an_address_is_refused(self):
        self.start()
        before = self.sidecar.request("GET", "/v1/sidecar", port=self.sidecar.admin_port)[2]
        for upstream in ("http://unix:", "http://unix:/" + "a" * 300):
            body = json.dumps({"upstream": upstream})
            status, _, text = self.sidecar.request("PATCH", "/v1/sidecar", body, port=self.sidecar.admin_port)
            self.assertEqual(status, 400, text)
            self.assertIn("the path", text)
        self.assertEqual(self.sidecar.request("GET", "/v1/sidecar", port=self.sidecar.admin_port)[2], before)
        self.assertEqual(self.ask("ann"), 1)

    def test_idle_connections_of_clients_are_closed(self):
        self.start("--idle-timeout", "1s")
        closed = 'headgate_connections_closed_total{reason="idle_timeout"}'
        request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n"
        http2 = PREFACE + frame(SETTINGS, 0, 0)
        for number, first in enumerate((b"", request, http2), start=1):
            with self.subTest(first), socket.create_connection(("127.0.0.1", self.sidecar.port), 10) as connection:
                connection.sendall(first)
                received = read_all(connection)
                self.assertEqual(self.sidecar.metric(closed), number)
        last_stream, error = 0, NO_ERROR  # RFC 9113, 6.8: whoever sends a request now may send it again
        self.assertTrue(received.endswith(frame(GOAWAY, 0, 0, struct.pack(">II", last_stream, error))), received)

    def test_connections_that_wait_are_not_idle(self):
        """Neither for an answer, nor in a tunnel, whose silence has a time of its own."""
        release = threading.Event()
        self.addCleanup(release.set)

        def serve(connection, head):
            if "upgrade" in head.lower():
                connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            release.wait(20)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return False

        upstream = Upstream(self, serve)
        sidecar = self.enterContext(Sidecar(upstream.port, args=("--idle-timeout", "500ms")))
        connect = lambda: self.enterContext(socket.create_connection(("127.0.0.1", sidecar.port), 20))
        waiting = [connect(), connect()]
        for connection, upgrade in zip(waiting, ("", "Connection: Upgrade\r\nUpgrade: x\r\n")):
            connection.sendall(f"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n{upgrade}\r\n".encode())
        self.assertIn(" 101 ", read_head(waiting[1]))
        until(lambda: len(upstream.heads) == 2, 10, "both wait")
        self.assertEqual(read_all(connect()), b"")  # is idle for longer than both would have been
        release.set()
        for connection in waiting:
            self.assertIn(" 200 ", read_head(connection))

    def test_request_without_a_client(self):
        self.start()
        status, _, text = self.sidecar.request("GET", "/")
        self.assertEqual(status, 429)
        self.assertIn("the request does not name its client: the header x-client-id is missing", text.lower())
        self.assertIn("--anonymous", json.loads(text)["hint"])
        anonymous = self.enterContext(Sidecar(self.upstream.port, args=("--anonymous", "nobody")))
        self.assertEqual(anonymous.request("GET", "/")[0], 200)
        self.assertEqual(anonymous.metric('headgate_share_requests_total{client="nobody",outcome="allowed"}'), 1)
        by_address = self.enterContext(Sidecar(self.upstream.port, args=("--client-header", "none")))
        self.assertEqual(by_address.request("GET", "/")[0], 200)
        self.assertEqual(by_address.metric('headgate_share_requests_total{client="127.0.0.1",outcome="allowed"}'), 1)


class Health(unittest.TestCase):
    def test_the_failure_of_an_address_and_its_return_are_told(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            return False

        well = Upstream(self, serve)
        port = free_port()
        name = f"127.0.0.1:{port}"
        sidecar = self.enterContext(Sidecar(port, well.port, args=("--threads", "1")))
        get = lambda: sidecar.request("GET", "/", headers=CLIENT)[0]
        state = lambda: json.loads(sidecar.request("GET", "/v1/sidecar", port=sidecar.admin_port)[2])
        health = lambda: {one["address"]: one["health"] for one in state().get("addresses", [])}
        until(lambda: [get() for _ in range(4)] and health().get(name) == "set_aside", 10, "it is set aside")
        self.assertEqual(health()[f"127.0.0.1:{well.port}"], "well")
        self.assertIn("upstream.set_aside address=" + name, sidecar.errors())
        series = f'headgate_upstream_address_set_aside{{address="{name}"}}'
        self.assertEqual(sidecar.metric(series), 1)
        Upstream(self, serve, port=port)
        until(lambda: [get() for _ in range(4)] and health()[name] == "well", 10, "it has returned")
        until(lambda: "upstream.returned address=" + name in sidecar.errors(), 5, "the log says so")
        self.assertEqual(sidecar.metric(series), 0)


class Sources(unittest.TestCase):
    def test_settings_come_from_a_file_too_and_the_admin_address_has_a_name(self):
        upstream = Upstream(self, lambda connection, _: connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n") is None)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "sidecar.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"upstream: http://127.0.0.1:{upstream.port}\nknown_host: sidecar.svc\nclient_header: X-Tenant\n")
        sidecar = self.enterContext(Sidecar(args=("--config", path)))
        self.assertIn(f"settings.loaded file={path}", sidecar.errors())
        self.assertEqual(sidecar.request("GET", "/", headers={"X-Tenant": "ann"})[0], 204)
        for host, status in (("sidecar.svc", 200), ("sidecar.svc:8081", 200), ("elsewhere", 421)):
            answer = sidecar.request("GET", "/v1/sidecar", headers={"Host": host}, port=sidecar.admin_port)
            self.assertEqual(answer[0], status, host)


if __name__ == "__main__":
    unittest.main()
