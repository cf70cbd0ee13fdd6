"""No client can shut out others: silent connections, full connection tables, and a process out of
descriptors."""

import os
import re
import socket
import tempfile
import unittest
from contextlib import ExitStack

from harness import BINARY, Headgate, allow_files, read_all, require, run, until, wait

FULL = b"-ERR max number of clients reached"


class DoorsTest(unittest.TestCase):
    def setUp(self):
        self.open = self.enterContext(ExitStack())

    def connect(self, server, host="127.0.0.1"):
        """Connects from the loopback address `host`, so that one machine can act as many
        clients."""
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=10, source_address=(host, 0))
        return self.open.enter_context(connection)

    def answer(self, server, request, host="127.0.0.1"):
        connection = self.connect(server, host)
        connection.sendall(request)
        return read_all(connection)

    def assert_served(self, server, host):
        connection = self.connect(server, host)
        connection.sendall(b"PING\r\n")
        self.assertEqual(connection.recv(64), b"+PONG\r\n")

    def assert_refused_with_a_reason(self, server, host):
        self.assertTrue(self.answer(server, b"PING\r\n", host).startswith(FULL))
        answer = self.answer(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", host)
        self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        self.assertIn(b'"hint":', answer)


class Doors(DoorsTest):
    def test_ten_thousand_silent_connections_block_neither_the_admin_address_nor_the_refusal_message(self):
        count = min(10_000, allow_files() - 500)
        with Headgate("--max-connections", str(count), admin="127.0.0.1:0") as server:
            # Uses sixteen addresses, because by default one address may have at most a quarter of
            # all connections.
            for i in range(count):
                self.connect(server, f"127.0.0.{2 + i % 16}")
            until(lambda: server.metric("headgate_connections") >= count, 30, "all are accepted")
            self.assertEqual(server.request("GET", "/healthz", port=server.admin_port)[0], 200)
            self.assert_refused_with_a_reason(server, "127.0.0.99")
            for _ in range(200):
                self.answer(server, b"PING\r\n", "127.0.0.99")
            self.assertGreaterEqual(server.metric('headgate_connections_refused_total{reason="total_limit"}'), 202)
            lines = until(lambda: re.findall(r"connections\.refused .*", server.errors()), 5, "the log reports refused connections")
            self.assertIn("reason=total_limit", lines[0])
            self.assertIn("max_connections", lines[0])
            self.assertIn("hint=", lines[0])
            self.assertLess(len(lines), 10)
            # Silent clients in the queue for an error do not keep other clients from getting
            # theirs.
            for _ in range(300):
                self.connect(server, "127.0.0.98")
            self.assert_refused_with_a_reason(server, "127.0.0.99")
            self.assertEqual(server.request("GET", "/healthz", port=server.admin_port)[0], 200)

    def test_one_address_gets_a_quarter_of_the_places_by_default(self):
        with Headgate("--max-connections", "200", admin="127.0.0.1:0") as server:
            for _ in range(50):
                self.assert_served(server, "127.0.0.2")
            self.assert_refused_with_a_reason(server, "127.0.0.2")
            self.assert_served(server, "127.0.0.3")
            self.assertGreaterEqual(server.metric('headgate_connections_refused_total{reason="address_limit"}'), 2)
            until(lambda: "reason=address_limit" in server.errors(), 5, "the log reports the refusal")

    def test_an_address_of_one_protocol_gives_the_reason_before_the_client_speaks(self):
        with Headgate("--max-connections", "4", "--listen-resp", "127.0.0.1:0") as server:
            server.port = server.wait_for(r"listening on 127\.0\.0\.1:(\d+)\n")
            self.assert_served(server, "127.0.0.2")
            self.assertTrue(read_all(self.connect(server, "127.0.0.2")).startswith(FULL))

    def test_the_admin_address_has_its_own_bounded_number_of_connections(self):
        with Headgate("--max-admin-connections", "8", admin="127.0.0.1:0") as server:
            admin_port, server.admin_port = server.admin_port, None  # metrics come from the other address
            silent = [self.silent(admin_port, "127.0.0.2") for _ in range(6)] + [self.silent(admin_port, "127.0.0.3") for _ in range(2)]
            until(lambda: server.metric("headgate_connections") >= 9, 10, "all are accepted")
            self.assertEqual(server.request("GET", "/healthz", port=admin_port)[0], 503)
            self.assert_served(server, "127.0.0.1")
            self.assertEqual(server.metric('headgate_connections_refused_total{reason="admin_limit"}'), 1)
            for connection in silent:
                connection.close()
            until(lambda: server.request("GET", "/healthz", port=admin_port)[0] == 200, 10, "a new connection is accepted")

    def silent(self, port, source):
        return self.enterContext(socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0)))

    def expect_health_while_one_address_is_silent(self, server):
        for _ in range(70):
            self.silent(server.admin_port, "127.0.0.2")
        full = 'headgate_connections_refused_total{reason="admin_limit"}'
        until(lambda: server.metric(full) == 70 - 48, 10, "three quarters are taken, and the others refused")
        self.assertEqual(server.request("GET", "/healthz", port=server.admin_port)[0], 200)
        with self.silent(server.admin_port, "127.0.0.2") as refused:
            refused.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertTrue(read_all(refused).startswith(b"HTTP/1.1 503 "))

    def test_one_address_leaves_places_at_the_admin_address_to_others(self):
        with Headgate(admin="127.0.0.1:0") as server:
            self.expect_health_while_one_address_is_silent(server)

    def test_one_address_leaves_places_at_the_admin_address_of_a_sidecar_to_others(self):
        words = ("--upstream", "http://127.0.0.1:1", "--capacity", "1")
        with SmallSidecar(*words, admin="127.0.0.1:0") as sidecar:
            self.expect_health_while_one_address_is_silent(sidecar)

    def test_silent_connections_of_the_admin_address_end_after_the_request_timeout(self):
        words = ("--max-admin-connections", "2", "--request-timeout", "500ms")
        with Headgate(*words, admin="127.0.0.1:0") as server:
            silent = [self.silent(server.admin_port, "127.0.0.2") for _ in range(2)]
            for connection in silent:
                self.assertEqual(read_all(connection), b"")
            self.assertEqual(server.request("GET", "/healthz", port=server.admin_port)[0], 200)


class SmallSidecar(Headgate):
    COMMAND = "sidecar"

    def __init__(self, *args, **more):
        super().__init__("--upstream-connections", "100", *args, **more)


class Descriptors(DoorsTest):
    def setUp(self):
        super().setUp()
        require("prlimit")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def test_ten_descriptors_are_an_error_at_start(self):
        refused = run("prlimit", "--nofile=10:10", BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", "--threads", "1")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("10 open files", refused.stderr)
        self.assertTrue(refused.stderr.endswith("hint: raise `ulimit -n`\n"), refused.stderr)

    def test_every_number_of_descriptors_starts_or_is_an_error(self):
        for number in (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128):
            words = ["prlimit", f"--nofile={number}:{number}", BINARY, "serve", "--listen", "127.0.0.1:0"]
            words += ["--admin-listen", "none", "--threads", "2", "--rule", "a: 1/s"]
            refused = run("timeout", "1", *words)
            self.assertIn(refused.returncode, (0, 2, 124), (number, refused.stderr))
            self.assertNotIn("terminate called", refused.stderr, number)
            if refused.returncode == 2:
                self.assertIn("hint:", refused.stderr, number)

    def test_a_table_without_memory_is_an_error_at_start(self):
        little = ("prlimit", f"--as={1 << 40}", "timeout", "10", BINARY)
        buckets = ("--max-buckets", str(1 << 36))
        for words in (
            ("serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", *buckets),
            ("sidecar", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--capacity", "9", "--rule", "a: 1/s", *buckets),
        ):
            with self.subTest(words[0]):
                refused = run(*little, *words)
                self.assertEqual(refused.returncode, 3, refused.stderr)
                self.assertRegex(refused.stderr, "error: there is no memory\nhint: lower .*max.buckets, or raise `ulimit -v`\n$")

    def test_fewer_descriptors_than_connections_lower_their_number(self):
        with Headgate("--threads", "2", prefix=("prlimit", "--nofile=300:300"), admin="127.0.0.1:0") as server:
            self.assertRegex(server.errors(), r"connections\.max_lowered .*open_files_max=300")
            for i in range(400):
                self.connect(server, f"127.0.0.{2 + i % 16}")
            self.assert_refused_with_a_reason(server, "127.0.0.99")
            self.assertEqual(server.request("GET", "/healthz", port=server.admin_port)[0], 200)
            self.assertEqual(server.metric("headgate_accept_errors_total"), 0)

    def test_a_sidecar_logs_that_it_accepts_fewer_connections(self):
        words = ("--upstream", "http://127.0.0.1:1", "--capacity", "1", "--threads", "1", "--max-connections", "200")
        with SmallSidecar(*words, prefix=("prlimit", "--nofile=300:300")) as sidecar:
            self.assertRegex(sidecar.errors(), r"connections\.max_lowered .*open_files_max=300 max_connections=200")
        with SmallSidecar(*words, prefix=("prlimit", "--nofile=500:500")) as sidecar:
            self.assertNotIn("connections.max_lowered", sidecar.errors())

    def test_without_free_descriptors_refusals_the_admin_address_and_snapshots_work(self):
        snapshot = os.path.join(self.folder, "snapshot")
        args = ("--threads", "2", "--snapshot", snapshot, "--snapshot-interval", "1s", "--rule", "a: 1/s")
        with Headgate(*args, admin="127.0.0.1:0") as server:
            self.assert_served(server, "127.0.0.2")
            # From now on the process has no free descriptor number.
            highest = max(int(name) for name in os.listdir(f"/proc/{server.process.pid}/fd"))
            run("prlimit", "--pid", str(server.process.pid), f"--nofile={highest + 1}:{highest + 1}", check=True)
            for i in range(100):
                self.connect(server, f"127.0.0.{2 + i % 16}")
            self.assert_refused_with_a_reason(server, "127.0.0.99")
            self.assertEqual(server.request("GET", "/healthz", port=server.admin_port)[0], 200)
            written = server.metric('headgate_snapshot_writes_total{result="written"}')
            until(
                lambda: server.metric('headgate_snapshot_writes_total{result="written"}') >= written + 2,
                20,
                "snapshots are written",
            )
            self.assertEqual(server.metric('headgate_snapshot_writes_total{result="failed"}'), 0)
            self.assertGreaterEqual(server.metric('headgate_connections_refused_total{reason="no_files"}'), 2)
            self.assertGreaterEqual(server.metric("headgate_accept_errors_total"), 1)
            self.assertIn("reason=no_files", server.errors())
            self.open.close()
            wait(0.2)
            self.assert_served(server, "127.0.0.2")


if __name__ == "__main__":
    unittest.main()
