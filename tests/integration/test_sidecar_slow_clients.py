"""Slow clients of a sidecar do not hold up others: slowhttptest sends heads slowly, sends bodies
slowly, and reads answers slowly. Meanwhile a client at another address is served at once."""

import http.client
import re
import statistics
import subprocess
import time
import unittest

from harness import Sidecar, allow_files, require, until
from upstreams import Upstream, read_exactly

CONNECTIONS = 300
SECONDS = 6
PROBE_P99_MS = 250
PAGE = b"x" * 1_000_000


def serve(connection, head):
    length = re.search(r"(?i)\r\ncontent-length: (\d+)\r\n", head)
    if length:
        read_exactly(connection, int(length.group(1)))
    body = PAGE if head.startswith("GET /page") else b"ok"
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return True


class SlowClients(unittest.TestCase):
    def setUp(self):
        require("slowhttptest")
        allow_files()
        upstream = Upstream(self, serve)
        # Fewer connections to the upstream than there are slow clients, all of which have one address.
        args = ("--client-header", "none", "--upstream-connections", "64", "--queue", "128")
        self.sidecar = self.enterContext(Sidecar(upstream.port, args=args))

    def attack(self, *words):
        command = ("slowhttptest", "-c", str(CONNECTIONS), "-r", str(CONNECTIONS), "-l", str(SECONDS), "-p", "5", *words)
        attacker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        return attacker

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.sidecar.port, timeout=10, source_address=("127.0.0.2", 0))
        connection.request("GET", "/")
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    def others_are_served(self, attacker):
        times = []
        while attacker.poll() is None:
            start = time.monotonic()
            self.assertEqual(self.ask(), (200, b"ok"))
            times.append((time.monotonic() - start) * 1000)
        self.assertGreater(len(times), 200)
        self.assertLess(statistics.quantiles(times, n=100)[98], PROBE_P99_MS)

    def connected(self):
        return self.sidecar.metric("headgate_connections") >= CONNECTIONS

    def test_slow_heads(self):
        attacker = self.attack("-H", "-i", "1", "-u", f"http://127.0.0.1:{self.sidecar.port}/")
        until(self.connected, SECONDS, "all slow clients are connected")
        self.others_are_served(attacker)

    def test_slow_bodies(self):
        attacker = self.attack("-B", "-i", "1", "-s", "65536", "-u", f"http://127.0.0.1:{self.sidecar.port}/")
        waits = 'headgate_upstream_waits_total{reason="client_share"}'
        until(lambda: self.sidecar.metric(waits) > 0, SECONDS, "the slow address has its part of the connections")
        self.others_are_served(attacker)

    def test_slow_readers(self):
        attacker = self.attack("-X", "-n", "1", "-z", "5", "-w", "1", "-y", "512", "-u", f"http://127.0.0.1:{self.sidecar.port}/page")
        until(self.connected, SECONDS, "all slow clients are connected")
        self.others_are_served(attacker)


if __name__ == "__main__":
    unittest.main()
