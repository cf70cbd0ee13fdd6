"""For any input bytes: no crash, no hang, bounded memory, and other clients are served."""

import random
import re
import socket
import time
import unittest

from harness import Headgate, read_all, until, wait

OPENINGS = [
    b"*1000000000\r\n",
    b"*1\r\n$1000000000\r\n",
    b"*-5\r\n",
    b"$5\r\nhello\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 100_000,
    b"X" * 200_000,
    b'"unbalanced\r\n',
    b"\0" * 4096,
    b"*2\r\n$11\r\nCL.THROTTLE\r\n",
]


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def without_date(answer):
    return re.sub(rb"\r\nDate: [^\r]*", b"", answer)


class HostileBytes(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Headgate("--rule", "user: 1000000/hour"))
        self.friend = self.server.connect()
        self.addCleanup(self.friend.close)

    def friend_is_served(self):
        self.friend.sendall(b"PING\r\n")
        self.assertEqual(self.friend.recv(64), b"+PONG\r\n")

    def throw(self, data):
        with self.server.connect() as connection:
            connection.settimeout(2)
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except OSError:
                pass  # reset by the server

    def test_connections_that_begin_with_an_invalid_request(self):
        for opening in OPENINGS:
            self.throw(opening)
            self.friend_is_served()
        self.assertIsNone(self.server.process.poll())

    def test_random_and_mutated_bytes(self):
        source = random.Random(20261121)
        valid = [
            b"*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n",
            b'POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 62\r\n\r\n'
            b'{"descriptors":[{"entries":[{"key":"user","value":"mallory"}]}]}',
        ]
        for _ in range(300):
            if source.random() < 0.3:
                data = source.randbytes(source.randrange(1, 2000))
            else:
                data = bytearray(source.choice(valid) * source.randrange(1, 4))
                for _ in range(source.randrange(1, 6)):
                    data[source.randrange(len(data))] = source.randrange(256)
            self.throw(bytes(data))
        self.friend_is_served()
        self.assertIsNone(self.server.process.poll())

    def answer_to(self, *pieces):
        """Sends each piece as its own packet; returns everything received until the server closes,
        and the seconds it took."""
        with self.server.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            began = time.monotonic()
            for piece in pieces:
                connection.sendall(piece)
                wait(0.02 if len(pieces) > 1 else 0)
            return read_all(connection), time.monotonic() - began

    def test_ambiguous_framing_is_refused_at_once_in_pieces_of_any_size(self):
        post = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
        get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        cases = [
            (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", b"400", b"does not end with CR LF"),
            (chunked + b"2;" + b"e" * 20_000 + b"\r\n{}\r\n0\r\n\r\n", b"431", b"chunk extensions are too long"),
            (chunked + (b"1;" + b"e" * 9000 + b"\r\n{\r\n") * 2 + b"0\r\n\r\n", b"431", b"chunk extensions are too long"),
            (chunked + b"2;a\nb\r\n{}\r\n0\r\n\r\n", b"400", b"does not end with CR LF"),
            (chunked + b"2\r\n{}\r\n0\r\nA: " + b"t" * 20_000 + b"\r\n\r\n", b"431", b"the trailer is too long"),
            (chunked + b"2\r\n{}\r\n0\r\nA: b\r\n c\r\n\r\n", b"400", b"folded over several lines"),
            (get + b"Content-Length: 2\r\n\r\n{}", b"400", b"GET and HEAD requests have no content"),
            (get + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400", b"GET and HEAD requests have no content"),
            (post + b"Content-Length: 2\r\nContent_Length: 0\r\n\r\n{}", b"400", b"looks like one that states the length"),
            (post + b"Transfer_Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", b"400", b"looks like one that states"),
        ]
        for request, status, detail in cases:
            whole, seconds = self.answer_to(request)
            self.assertTrue(whole.startswith(b"HTTP/1.1 " + status), (request[-80:], whole))
            self.assertIn(detail, whole)
            self.assertIn(b'"hint":', whole)
            # The request timeout is 10 s.
            self.assertLess(seconds, 5, request[-80:])
            for cut in (40, len(request) // 2, len(request) - 3):
                parts, _ = self.answer_to(request[:cut], request[cut:])
                self.assertEqual(without_date(parts), without_date(whole), (cut, request[-80:]))

    def test_an_absolute_target_without_a_path_asks_for_the_root(self):
        answer, _ = self.answer_to(b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)

    def test_many_half_requests_take_bounded_memory(self):
        before = resident_kib(self.server.process.pid)
        connections = []
        for _ in range(100):
            try:
                connection = self.server.connect()
                connection.sendall(b"*2\r\n$4\r\nECHO\r\n$1000000\r\n" + b"x" * 50_000)
                connections.append(connection)
            except OSError:
                break
        self.friend_is_served()
        self.assertLess(resident_kib(self.server.process.pid) - before, 64 * 1024)
        for connection in connections:
            connection.close()

    def test_a_flood_of_keys_takes_bounded_memory(self):
        with Headgate("--max-buckets", "10000") as server, server.connect() as connection:
            def throttle(first, count):
                connection.sendall(b"".join(b"CL.THROTTLE key%d 9 1 1000\r\n" % i for i in range(first, first + count)))
                received = b""
                while received.count(b"*5") < count or not received.endswith(b"\r\n"):
                    received += connection.recv(1 << 20)

            for first in range(0, 20_000, 1000):
                throttle(first, 1000)
            before = resident_kib(server.process.pid)
            for first in range(20_000, 200_000, 1000):
                throttle(first, 1000)
            self.assertLess(resident_kib(server.process.pid) - before, 4 * 1024)
            metrics = server.request("GET", "/metrics")[2]
            buckets = next(l for l in metrics.split("\n") if l.startswith("headgate_buckets "))
            self.assertLessEqual(float(buckets.rsplit(" ", 1)[1]), 10_000)

    def test_silent_connections_are_closed(self):
        with Headgate("--request-timeout", "200ms") as server, server.connect() as connection:
            connection.sendall(b"GET / HT")
            connection.settimeout(0.05)

            def closed():
                try:
                    return connection.recv(4096) == b""
                except TimeoutError:
                    return False
                except OSError:
                    return True

            until(closed, 5, "the connection with the unfinished request is closed")


if __name__ == "__main__":
    unittest.main()
