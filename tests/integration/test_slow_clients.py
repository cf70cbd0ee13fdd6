"""Slow clients do not hold up others: slowhttptest sends headers slowly, sends bodies slowly, and
reads answers slowly, with 1,000 connections each; others pipeline requests and do not read.
Meanwhile other clients are served at once."""

import os
import socket
import statistics
import subprocess
import time
import unittest
from contextlib import ExitStack

from harness import Headgate, allow_files, require, until, wait

CONNECTIONS = 1000
SECONDS = 12  # more than the request_timeout below
SILENT_READERS = 300
PROBE_P99_MS = 250


class SlowClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require("slowhttptest")
        allow_files()  # slowhttptest and the server inherit it

    def attack(self, server, *words):
        """Starts slowhttptest; all its connections come from one address."""
        command = ["slowhttptest", "-c", str(CONNECTIONS), "-r", "1000", "-l", str(SECONDS), "-p", "5", *words]
        attacker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        until(lambda: server.metric("headgate_connections") >= CONNECTIONS, SECONDS, "all slow clients are connected")
        return attacker

    def probe(self, server, attacker):
        """Sends requests over new connections while the attack lasts; returns their times in ms."""
        times = []
        while attacker.poll() is None:
            start = time.monotonic()
            status = server.check(api_key=f"key{len(times)}")[0]
            times.append((time.monotonic() - start) * 1000)
            self.assertEqual(status, 200)
            wait(0.001)  # each connection keeps its local port for a minute, of which there are 28,000
        return times

    def assert_others_are_served(self, server, attacker):
        times = self.probe(server, attacker)
        self.assertGreater(len(times), 200)
        p99 = statistics.quantiles(times, n=100)[98]
        self.assertLess(p99, PROBE_P99_MS)

    def assert_all_timed_out(self, server):
        closed = server.metric('headgate_connections_closed_total{reason="request_timeout"}')
        self.assertGreaterEqual(closed, CONNECTIONS)

    def serve(self):
        return self.enterContext(Headgate("--request-timeout", "5s"))

    def test_slow_headers(self):
        server = self.serve()
        attacker = self.attack(server, "-H", "-i", "1", "-u", f"http://127.0.0.1:{server.port}/auth/")
        self.assert_others_are_served(server, attacker)
        self.assert_all_timed_out(server)

    def test_slow_bodies(self):
        server = self.serve()
        attacker = self.attack(server, "-B", "-i", "1", "-s", "65536", "-f", "application/json",
                               "-u", f"http://127.0.0.1:{server.port}/v1/check")
        self.assert_others_are_served(server, attacker)
        self.assert_all_timed_out(server)

    def test_slow_readers(self):
        server = self.serve()
        # Each client asks ten times for a page of 47 KB, and reads 5 bytes per second.
        attacker = self.attack(server, "-X", "-k", "10", "-n", "1", "-z", "5", "-w", "1", "-y", "512",
                               "-u", f"http://127.0.0.1:{server.port}/openapi.json")
        self.assert_others_are_served(server, attacker)

    def test_readers_that_pipeline_and_do_not_read(self):
        server = self.serve()
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with ExitStack() as opened, server.connect() as friend:
            before = tcp_memory()
            for _ in range(SILENT_READERS):
                reader = opened.enter_context(socket.socket())
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                reader.connect(("127.0.0.1", server.port))
                reader.setblocking(False)
                try:
                    reader.send(request * 300)
                except BlockingIOError:
                    pass
            times = []
            for _ in range(200):
                start = time.monotonic()
                friend.sendall(b"PING\r\n")
                self.assertEqual(friend.recv(64), b"+PONG\r\n")
                times.append((time.monotonic() - start) * 1000)
                wait(0.005)
            self.assertLess(statistics.quantiles(times, n=100)[98], PROBE_P99_MS)
            # Other tests may run on this machine, so this is twice the bound.
            self.assertLess(tcp_memory() - before, 2 * SILENT_READERS * 256 * 1024)


def tcp_memory():
    """Bytes in the buffers of all TCP sockets of the machine."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        pages = next(line for line in file if line.startswith("TCP:")).split()[-1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    unittest.main()
