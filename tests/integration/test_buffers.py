"""Unfinished requests of all connections are bounded together, and their memory goes back to the
system."""

import os
import selectors
import socket
import tempfile
import threading
import time
import unittest
from contextlib import ExitStack, suppress

from harness import Headgate, resident_bytes, until

MIB = 1 << 20


def besides(connections):
    """The memory that the server may use beyond the budget: the amount by which one loop exceeds it
    before it closes connections, and the buffers that are too small to be counted. Larger buffers
    have their own pages, so that nothing is lost between them."""
    return 16 * MIB + connections * 16 * 1024


class PeakMemory:
    """The server's peak resident memory during the block."""

    def __init__(self, server):
        self.server = server
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self._done.wait(0.005):
            self.peak = max(self.peak, resident_bytes(self.server))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


def send_to_all(connections, request, seconds=60):
    """Sends `request` on all connections at once, piece by piece. Returns the answer to each, read
    until the request was sent or the server closed the connection."""
    selector = selectors.DefaultSelector()
    sent = dict.fromkeys(connections, 0)
    answers = dict.fromkeys(connections, b"")
    for connection in connections:
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
    deadline = time.monotonic() + seconds
    while selector.get_map() and time.monotonic() < deadline:
        for key, events in selector.select(1):
            connection = key.fileobj
            try:
                if events & selectors.EVENT_READ:
                    part = connection.recv(65536)
                    answers[connection] += part
                    if not part:
                        selector.unregister(connection)
                        continue
                if events & selectors.EVENT_WRITE and sent[connection] < len(request):
                    sent[connection] += connection.send(request[sent[connection] : sent[connection] + 65536])
            except (ConnectionResetError, BrokenPipeError):
                selector.unregister(connection)
                continue
            if sent[connection] == len(request):
                selector.unregister(connection)
    selector.close()
    return answers


class Buffers(unittest.TestCase):
    def server(self, *args):
        """A server with a small table of buckets: on some systems memory is resident once it is
        read, and the first sweep of the table reads all of it."""
        return Headgate("--rule", "a: 1/s", "--max-buckets", "1000", *args)

    def assert_bounded(self, server, count, request, budget, is_refusal):
        before = resident_bytes(server)
        with ExitStack() as opened:
            friend = opened.enter_context(server.connect())
            connections = [opened.enter_context(server.connect()) for _ in range(count)]
            def closed():
                return server.metric('headgate_connections_closed_total{reason="buffer_budget"}')

            closed_min = count - budget // len(request) - count // 10
            with PeakMemory(server) as memory:
                answers = send_to_all(connections, request)
                until(lambda: closed() >= closed_min, 30, "the rest is closed")
            self.assertLess(memory.peak - before, budget + besides(count))
            # Most of the budget can be used while other clients are served.
            self.assertGreater(memory.peak - before, budget // 2)
            friend.sendall(b"PING\r\n")
            self.assertEqual(friend.recv(64), b"+PONG\r\n")
            refused = 0
            for connection, answer in answers.items():
                connection.setblocking(False)
                try:
                    answer += connection.recv(65536)
                except OSError:
                    pass
                refused += is_refusal(answer)
            # A refusal is lost if the client's own bytes reset the connection.
            self.assertGreaterEqual(refused, closed_min * 0.9)
            # For a moment it may be above, until connections have been closed for it.
            until(lambda: server.metric("headgate_buffer_bytes") <= budget, 5, "the budget holds")
            until(lambda: "buffers.shed" in server.errors(), 5, "the log says so")
        until(lambda: resident_bytes(server) - before < 16 * MIB, 15, "memory goes back to the system")
        until(lambda: server.metric("headgate_buffer_bytes") < MIB, 5, "nothing is counted that is gone")

    def test_a_thousand_bodies_one_byte_short_of_a_mebibyte(self):
        head = (
            b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % MIB
        )
        with self.server("--request-timeout", "60s") as server:
            self.assert_bounded(
                server, 1000, head + b" " * (MIB - 1), 256 * MIB, lambda answer: answer.startswith(b"HTTP/1.1 503 ")
            )

    def test_unfinished_commands_of_redis_clients(self):
        budget = 32 * MIB
        request = b"*3\r\n$4\r\nECHO\r\n$500000\r\n" + b"x" * 500_000 + b"\r\n$400000\r\n" + b"x" * 399_999
        with self.server("--request-timeout", "60s", "--max-buffer-bytes", str(budget)) as server:
            self.assert_bounded(server, 100, request, budget, lambda answer: answer.startswith(b"-ERR "))

    def test_answers_that_nobody_reads(self):
        budget = 16 * MIB
        command = b"*2\r\n$4\r\nECHO\r\n$500000\r\n" + b"x" * 500_000 + b"\r\n"
        with self.server("--write-timeout", "60s", "--max-buffer-bytes", str(budget)) as server:
            before = resident_bytes(server)

            def closed():
                return server.metric('headgate_connections_closed_total{reason="buffer_budget"}')

            with ExitStack() as opened, PeakMemory(server) as memory:
                connections = []
                for _ in range(100):
                    connection = socket.socket()
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    connection.settimeout(10)
                    connection.connect(("127.0.0.1", server.port))
                    connections.append(opened.enter_context(connection))
                send_to_all(connections, command * 8, seconds=3)
                until(closed, 20, "some are closed")
                with server.connect() as friend:
                    friend.sendall(b"PING\r\n")
                    self.assertEqual(friend.recv(64), b"+PONG\r\n")
            self.assertLess(memory.peak - before, budget + besides(len(connections)))

    def test_transactions_that_wait_for_a_login(self):
        budget = 32 * MIB
        verifier = 32 * MIB  # the memory of scrypt, for one password at a time
        request = b"MULTI\r\n" + b"COMMAND DOCS\r\n" * 127 + b"AUTH nobody same\r\nEXEC\r\n"
        with tempfile.TemporaryDirectory() as folder:
            users = os.path.join(folder, "users")
            with open(users, "w", encoding="utf-8") as file:
                file.write("* read -\n")
            with self.server("--users-file", users, "--max-buffer-bytes", str(budget)) as server:
                before = resident_bytes(server)
                with ExitStack() as opened, PeakMemory(server) as memory:
                    # These passwords keep the verifier busy.
                    for i in range(31):
                        opened.enter_context(server.connect()).sendall(b"AUTH nobody x%d\r\n" % i)
                    connections = [opened.enter_context(server.connect()) for _ in range(200)]
                    for connection in connections:
                        connection.sendall(request)
                    until(
                        lambda: server.metric('headgate_connections_closed_total{reason="buffer_budget"}'),
                        20,
                        "some are closed",
                    )
                    with server.connect() as friend:
                        friend.sendall(b"PING\r\n")
                        self.assertEqual(friend.recv(64), b"+PONG\r\n")
                    # Whoever has an answer is at EXEC, or closed.
                    for connection in connections:
                        with suppress(ConnectionResetError):
                            connection.recv(1)
                self.assertLess(memory.peak - before, budget + verifier + besides(len(connections)))


if __name__ == "__main__":
    unittest.main()
