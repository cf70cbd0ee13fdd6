"""Clients may use any number of limits and keys of their own. Rules still hold, and can be
changed."""

import os
import re
import tempfile
import unittest

from harness import Headgate, replace_file, resident_bytes, until
from load import encode

BATCH = 1000
# More different limits than the table of clients' limits holds by default.
LIMITS = 263_000
CLIENTS = 10_000
# A bucket takes at most 114 bytes. The rest is for other work of the process.
BYTES_PER_CLIENT = 140
RULES = """domain: edge
descriptors:
  - key: user
    rate_limit: {{requests_per_unit: {requests}, unit: hour}}
"""
ALLOWED = re.compile(rb"\$7\r\nallowed\r\n:([01])\r\n\$9\r\ndecisions")


class Client:
    """A connection that sends commands in batches."""

    def __init__(self, server):
        self._connection = server.connect()

    def ask(self, commands):
        """The replies to all of them, as one text."""
        replies = []
        for first in range(0, len(commands), BATCH):
            self._connection.sendall(b"".join(commands[first : first + BATCH]) + b"PING\r\n")
            reply = b""
            while not reply.endswith(b"+PONG\r\n"):
                received = self._connection.recv(1 << 20)
                if not received:
                    raise AssertionError("the server closed the connection")
                reply += received
            replies.append(reply[: -len(b"+PONG\r\n")])
        return b"".join(replies)

    def close(self):
        self._connection.close()


def throttle(key, max_burst, count, period_s):
    return b"CL.THROTTLE %s %d %d %d\r\n" % (key.encode(), max_burst, count, period_s)


def checks(users, cost=1):
    return [encode("HG.CHECK", "edge", "COST", str(cost), "ENTRIES", "1", "user", f"u{i}") for i in range(users)]


class Floods(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(self.folder, "edge.yaml")
        self.snapshot = os.path.join(self.folder, "buckets.snapshot")
        self.write_rules(5)

    def write_rules(self, requests):
        replace_file(self.rules, RULES.format(requests=requests))

    def start(self, *args):
        server = self.enterContext(Headgate("--rules", self.rules, "--snapshot", self.snapshot, *args))
        client = Client(server)
        self.addCleanup(client.close)
        return server, client

    def passed(self, client, commands):
        verdicts = ALLOWED.findall(client.ask(commands))
        self.assertEqual(len(verdicts), len(commands))
        return verdicts.count(b"1")

    def limit_of(self, server, user):
        return server.check("edge", cost=0, user=user)[2]["decisions"][0]

    def test_a_full_table_of_clients_limits_does_not_affect_other_clients(self):
        server, client = self.start()
        self.assertEqual(server.check("edge", cost=4, user="ann")[0], 200)

        replies = client.ask([throttle(f"k{i}", i, 1000, 86400) for i in range(1, LIMITS + 1)])
        self.assertEqual(replies.count(b"*5\r\n"), LIMITS, replies[-200:])
        self.assertGreater(server.metric("headgate_client_limits_forgotten_total"), 0)
        # This holds even for a client that adds one more in a request.
        body = (
            '{"domain": "edge", "descriptors": [{"entries": [{"key": "own", "value": "1"}],'
            ' "limit": {"requests_per_unit": 7, "unit": "hour"}}]}'
        )
        self.assertEqual(server.request("POST", "/v1/check", body)[0], 200)

        self.write_rules(7)
        until(lambda: self.limit_of(server, "ann")["limit"] == 7, 10, "the edited rules are in force")
        self.assertEqual(self.limit_of(server, "ann")["remaining"], 3)
        self.assertEqual(server.stop(), 0)

        self.write_rules(9)
        server, client = self.start()
        self.assertEqual(self.limit_of(server, "ann")["limit"], 9)
        self.assertEqual(self.limit_of(server, "ann")["remaining"], 5)
        self.assertEqual(client.ask([throttle("another", 123_456, 77, 86400)]).count(b"*5\r\n"), 1)

    def test_a_snapshot_larger_than_the_tables_is_loaded_partly(self):
        server, client = self.start()
        self.assertEqual(server.check("edge", cost=4, user="ann")[0], 200)
        client.ask([throttle(f"k{i}", i, 1000, 86400) for i in range(1, 2001)])
        self.assertEqual(server.stop(), 0)

        server, _ = self.start("--max-limits", "1000")
        self.assertEqual(self.limit_of(server, "ann")["remaining"], 1)
        self.assertEqual(server.metric("headgate_snapshot_buckets_left_out_total"), 1000)
        self.assertIn("snapshot.buckets_left_out", server.errors())

    def test_memory_grows_with_the_clients_and_not_with_the_table(self):
        server, client = self.start()
        # The buffers of the connection and the first page of each table.
        client.ask([throttle("first", 1000, 1000, 86400)] * BATCH)
        before = resident_bytes(server)
        client.ask([throttle(f"k{i}", 1000, 1000, 86400) for i in range(CLIENTS)])
        self.assertLess((resident_bytes(server) - before) / CLIENTS, BYTES_PER_CLIENT)

    def test_a_flood_of_very_long_periods_does_not_lift_limits_of_rules(self):
        users, places = 2000, 20_000
        for times in (2, 10):
            with self.subTest(times=times):
                server, client = self.start("--max-buckets", str(places))
                self.assertEqual(self.passed(client, checks(users, cost=5)), users)
                flood = [throttle(f"x{i}", 0, 1, 4_000_000_000) for i in range(times * places)]
                self.assertEqual(client.ask(flood).count(b"*5\r\n:0"), len(flood))
                self.assertEqual(self.passed(client, checks(users)), 0)
                self.assertGreater(server.metric("headgate_evictions_total"), 0)
                server.stop()
                os.remove(self.snapshot)


if __name__ == "__main__":
    unittest.main()
