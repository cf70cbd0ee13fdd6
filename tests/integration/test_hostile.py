"""Whatever bytes arrive: no crash, no hang, bounded memory, and the others are served."""

import random
import socket
import unittest

from harness import Headgate, until

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
                pass  # reset by the peer: it had enough

    def test_openings_that_are_no_request(self):
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

    def test_a_client_that_says_nothing_is_let_go(self):
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

            until(closed, 5, "the half request is given up")


if __name__ == "__main__":
    unittest.main()
