"""Ten thousand connections of a sidecar come and go, in every way in which clients leave, while the service
restarts. Afterwards nothing of them is left: no connection, place, permit, file or memory."""

import os
import select
import socket
import struct
import tempfile
import threading
import unittest

import http2_frames as h2
from harness import Sidecar, allow_files, until
from test_sidecar import MIB
from upstreams import Nginx

CROWDS, CONNECTIONS = 2, 5000
PARTS = 4  # threads that connect
PLACES = 16
PLACES_OF_ONE = 14  # one is kept, and a client gets no other once it has eight times the rest
RULES = """domain: default
descriptors:
- key: client
  rate_limits:
  - {algorithm: concurrency, requests: 100, ttl: 1h}
  - {unit: hour, requests_per_unit: 1000000000, cost: {of: response_bytes, per: 1KiB, reserve: 64KiB}}
"""
GAUGES = ("headgate_proxy_in_flight", "headgate_upstream_queue", "headgate_permits_in_memory",
          "headgate_auth_held", "headgate_buffer_bytes")
HELD = 'headgate_permits_held{domain="default",rule="client"}'


def ask(client, method="GET", path="/small", fields=""):
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\nX-Client-Id: {client}\r\n{fields}\r\n".encode()


def streams(client):
    frames = b"".join(h2.headers(2 * number + 1, path="/page", x_client_id=client) for number in range(10))
    return h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0) + frames


def readable(connections, milliseconds):
    """How many connections have something to read, after this time at the latest."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN)
    return len(poll.poll(milliseconds))


AT_ONCE, AFTER_A_BYTE, AT_THE_END = "at once", "after a byte", "at the end"  # when a connection leaves


def kinds(client):
    """The bytes that a connection sends, and when it leaves."""
    return (
        (b"", AT_ONCE),
        (ask(client), AT_THE_END),
        (ask(client), AFTER_A_BYTE),
        (ask(client), AT_ONCE),
        (ask(client)[:40], AT_ONCE),
        (ask(client)[:40], AT_THE_END),
        (ask(client, path="/page"), AFTER_A_BYTE),
        (ask(client, path="/page"), AT_THE_END),
        (ask(client, "PUT", "/put/x", "Content-Length: 100000\r\n") + bytes(50_000), AT_ONCE),
        (ask(client, "PUT", "/put/x", "Transfer-Encoding: chunked\r\n") + b"5\r\nhello\r\n", AT_THE_END),
        (ask(client) * 5, AFTER_A_BYTE),
        (streams(client), AT_ONCE),
        (streams(client), AFTER_A_BYTE),
        (streams(client), AT_THE_END),
    )


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Crowd(unittest.TestCase):
    def setUp(self):
        self.count = min(CONNECTIONS, allow_files() - 1000)
        self.nginx = Nginx(self)
        with open(self.nginx.path("page"), "wb") as file:
            file.write(os.urandom(4 * MIB))
        rules = self.enterContext(tempfile.NamedTemporaryFile(suffix=".yaml"))
        rules.write(RULES.encode())
        rules.flush()
        # One loop, so that the places of a client are known.
        words = ("--threads", "1", "--upstream-connections", str(PLACES), "--rules", rules.name, "--max-connections", str(self.count + 100))
        self.sidecar = self.enterContext(Sidecar(self.nginx.port, args=words))

    def come(self, part):
        """Runs one part of the crowd. Some connections are reset by the sidecar or by this side."""
        stay = []
        for number in range(part, self.count, PARTS):
            variants = kinds(f"client{number % 50}")
            sends, leaves = variants[number // PARTS % len(variants)]
            connection = socket.create_connection(("127.0.0.1", self.sidecar.port), 10, source_address=(f"127.0.0.{2 + number % 16}", 0))
            self.came[part] += 1
            try:
                connection.sendall(sends)
                if leaves == AFTER_A_BYTE:
                    readable([connection], 5)
            except OSError:
                pass
            if leaves == AT_THE_END:
                stay.append(connection)
            elif number % 3:
                reset(connection)
            else:
                connection.close()
        return stay

    def crowd(self):
        """The crowd comes, the service restarts in the middle, and the crowd leaves."""
        self.came = [0] * PARTS
        stay = []
        threads = [threading.Thread(target=lambda part=part: stay.extend(self.come(part))) for part in range(PARTS)]
        for thread in threads:
            thread.start()
        until(lambda: sum(self.came) > self.count // 4, 60, "a quarter has come")
        self.nginx.stop()
        until(lambda: sum(self.came) > self.count // 2, 60, "the half has come")
        self.nginx.start()
        for thread in threads:
            thread.join()
        self.assertGreater(self.sidecar.metric("headgate_connections"), self.count // 5)
        self.assertGreater(self.sidecar.metric(HELD), 0)
        for number, connection in enumerate(stay):
            if number % 2:
                reset(connection)
            else:
                connection.close()

    def nothing_is_left(self):
        until(lambda: self.sidecar.metric("headgate_connections") <= 1, 30, "all connections but this one are closed")
        for gauge in (*GAUGES, HELD):
            until(lambda gauge=gauge: self.sidecar.metric(gauge) == 0, 30, f"{gauge} is 0")

    def places(self):
        """How many connections to the service one client gets whose answers nobody reads."""
        count = 2 * PLACES
        connections = [socket.create_connection(("127.0.0.1", self.sidecar.port), 10) for _ in range(count)]
        for connection in connections:
            connection.sendall(ask("zoe", path="/page"))
        seen = []

        def has_settled():
            seen.append((readable(connections, 0), self.sidecar.metric("headgate_upstream_queue")))
            return sum(seen[-1]) == count and seen[-1][0] > 0 and seen[-10:] == [seen[-1]] * 10

        until(has_settled, 20, "all are answered or wait")
        placed = seen[-1][0]
        for connection in connections:
            connection.close()
        self.nothing_is_left()
        return placed

    def files(self):
        return len(os.listdir(f"/proc/{self.sidecar.process.pid}/fd"))

    def is_served(self):
        return self.sidecar.request("GET", "/small", headers={"X-Client-Id": "ann"})[0] == 200

    def memory(self):
        with open(f"/proc/{self.sidecar.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def test_nothing_is_left_of_ten_thousand_connections(self):
        self.assertEqual(self.places(), PLACES_OF_ONE)
        files = self.files()
        used = []
        for _ in range(CROWDS):
            self.crowd()
            self.nothing_is_left()
            used.append(self.memory())
        self.assertLess(used[-1] - used[0], 8 * MIB, "memory leaks")
        self.assertGreater(self.sidecar.metric('headgate_proxy_requests_total{outcome="unreachable"}'), 0)
        until(self.is_served, 20, "the service is used again")
        self.assertEqual(self.places(), PLACES_OF_ONE)
        until(lambda: self.sidecar.metric("headgate_upstream_connections") == 0, 30, "idle connections to the service end")
        until(lambda: self.files() <= files, 20, "all files are closed")


if __name__ == "__main__":
    unittest.main()
