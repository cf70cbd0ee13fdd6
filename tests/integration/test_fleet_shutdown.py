"""An instance that is stopped returns its leases, even thousands of them, and logs the number that
it could not return."""

import re
import threading
import time
import unittest

from fleet import FleetTest
from load import check, passed
from resp import Replies, encode

KEYS = 8000
LIMIT = 1000
# A day's window: requests lost with a lease stay lost.
RULES = f"""domain: edge
descriptors:
  - key: k
    rate_limit: {{unit: day, requests_per_unit: {LIMIT}, algorithm: fixed_window}}
"""
BATCH = 500
LEASES_WITHIN = 40  # seconds; the machine may be busy


def replies(connection, commands):
    """The replies to all commands, sent in batches."""
    reader = Replies(connection)
    found = []
    for begin in range(0, len(commands), BATCH):
        batch = commands[begin : begin + BATCH]
        connection.sendall(b"".join(batch))
        found += reader.take(len(batch))
    return found


def remaining(reply):
    decision = reply[3][0]
    return decision[decision.index("remaining") + 1]


class Shutdown(FleetTest):
    RULES = RULES
    TIMES = ("--store-timeout", "200ms", "--store-connect-timeout", "2s")

    def lease(self, instance, keys, held):
        """Asks for every key in turn until this many requests of leases are held; returns how many
        requests passed."""
        commands = [check("k", f"v{i}") for i in range(keys)]
        count, until = 0, time.monotonic() + LEASES_WITHIN
        with instance.connect() as connection:
            while instance.metric("headgate_lease_requests_held") < held:
                self.assertLess(time.monotonic(), until, "too few leases are held")
                count += sum(map(passed, replies(connection, commands)))
        return count

    def stop(self, instance):
        """The time that stopping took, and the fields of its log line about leases."""
        began = time.monotonic()
        self.assertEqual(instance.stop(), 0)
        took = time.monotonic() - began
        lines = [line for line in instance.errors().splitlines() if "leases.returned" in line]
        self.assertEqual(len(lines), 1, instance.errors())
        return took, dict(re.findall(r"(\w+)=(\"[^\"]*\"|\S+)", lines[0]))

    def test_thousands_of_leases_are_returned(self):
        instance, other = self.instance(threads=1), self.instance()
        count = self.lease(instance, KEYS, held=8 * KEYS)
        took, said = self.stop(instance)
        print(f"\nstopped within {took:.2f} s: {said}")
        with other.connect() as connection:
            left = replies(connection, [encode("HG.PEEK", "edge", "ENTRIES", "1", "k", f"v{i}") for i in range(KEYS)])
        self.assertEqual(KEYS * LIMIT - sum(map(remaining, left)), count, "exactly the admitted requests are spent")
        self.assertGreaterEqual(int(said["keys"]), KEYS // 2)
        self.assertGreaterEqual(int(said["requests"]), KEYS)
        self.assertEqual(said["requests_left"], "0")

    def test_cut_connections_during_the_shutdown_lose_no_lease(self):
        self.TIMES = ("--store-timeout", "500ms", "--store-connect-timeout", "2s")
        instance = self.instance(threads=1)
        self.lease(instance, KEYS, held=KEYS)
        cut = threading.Timer(0.03, self.redis.command, ("CLIENT", "KILL", "TYPE", "normal"))
        cut.start()
        took, said = self.stop(instance)
        cut.join()
        print(f"\nstopped within {took:.2f} s: {said}")
        self.assertEqual(said["requests_left"], "0")

    def test_leases_are_returned_even_without_the_right_to_leave_the_list_of_instances(self):
        self.redis.command("ACL", "SETUSER", "default", "-zrem")
        instance = self.instance(threads=1)
        self.lease(instance, 1000, held=1000)
        _, said = self.stop(instance)
        self.assertEqual(said["requests_left"], "0", instance.errors())
        self.assertIn("store.alarm_raised", instance.errors())

    def test_an_unreachable_store_does_not_delay_the_shutdown(self):
        instance = self.instance()
        self.lease(instance, 1000, held=1000)
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        took, said = self.stop(instance)
        print(f"\nstopped within {took:.2f} s: {said}")
        self.assertEqual((said["requests"], said["keys"]), ("0", "0"))
        self.assertGreaterEqual(int(said["requests_left"]), 1000)
        self.assertIn("expire", said["effect"])
        # Half a second without an answer, plus slack for a busy machine.
        self.assertLess(took, 2)


if __name__ == "__main__":
    unittest.main()
