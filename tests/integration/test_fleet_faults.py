"""Each fault is produced in real processes, and costs at most what docs/guides/fleet.md states; see
faults.py. New histories of the store are in test_fleet_history.py, failovers in
test_fleet_cluster.py, and network partitions in test_fleet_partition.py."""

import signal
import threading
import time
import unittest

from harness import until, wait
from toll import BURST, LEASE_SECONDS, LIMIT, RULES, FaultTest

# The longest time for which a breaker stays open, with jitter; then the store is tried again.
BREAKER_SECONDS = 6.25


class Faults(FaultTest):
    TIMES = ("--store-timeout", "300ms", "--store-connect-timeout", "2s")

    # ---- Instances

    def test_an_instance_is_killed(self):
        toll = self.begin()
        self.instances[1].stop(signal.SIGKILL)
        wait(LEASE_SECONDS + 1)
        toll.check("killed", 0, 0)

    def test_an_instance_is_paused(self):
        toll = self.begin()
        self.instances[1].pause()
        wait(LEASE_SECONDS + 1)
        self.instances[1].resume()
        wait(1)
        toll.check("paused", 0, 0)

    def test_an_instance_is_shut_down(self):
        toll = self.begin()
        self.assertEqual(self.instances[1].stop(), 0)
        wait(2)
        toll.check("shutdown", 0, 0)

    # ---- The store cannot be reached

    def test_the_store_stands_still(self):
        toll = self.begin()
        self.away(toll, 3)
        self.until_shared(toll)
        toll.check("store_paused", toll.outage, 0)

    def test_the_store_stands_still_and_requests_are_refused(self):
        toll = self.begin("--on-store-failure", "deny")
        self.away(toll, 3)
        self.until_shared(toll)
        toll.check("store_paused_deny", 0, 3 + BREAKER_SECONDS)

    def test_the_store_stands_still_and_requests_are_allowed(self):
        toll = self.begin("--on-store-failure", "allow")
        self.away(toll, 2)
        self.until_shared(toll)
        toll.check("store_paused_allow", None, 0)

    def test_connections_are_cut(self):
        toll = self.begin()
        for _ in range(10):
            self.away(toll, 0.2, leave=lambda: self.redis.command("CLIENT", "KILL", "TYPE", "normal"), back=lambda: None)
        self.until_shared(toll)
        toll.check("connections_cut", toll.outage, 0)

    def test_the_store_restarts_empty(self):
        toll = self.begin()
        self.away(toll, 0.5, leave=self.redis.kill, back=self.redis.start)
        self.until_shared(toll)
        toll.check("restart_local", lambda: toll.outage(lost_end=1), 0)

    # ---- Stored data

    def test_a_live_key_is_deleted(self):
        toll = self.begin()
        for _ in range(3):
            self.assertEqual(self.redis.command("DEL", "hg:{r|edge|hot=hot#0}"), "1")
            wait(0.7)
        toll.check("deleted", 3, 0)

    def test_a_key_is_reset(self):
        toll = self.begin()
        for i in range(3):
            self.assertEqual(self.instances[i % 2].check("edge", path="/v1/reset", hot="hot")[0], 200)
            wait(0.7)
        toll.check("reset", 3, 0)

    def test_scripts_are_flushed_all_the_time(self):
        toll = self.begin()
        end = time.monotonic() + 2
        while time.monotonic() < end:
            self.redis.command("SCRIPT", "FLUSH")
            wait(0.02)
        toll.check("scripts_lost", 0, 0)

    def test_a_limit_changes(self):
        toll = self.begin()
        # The larger of the two becomes the bucket: the window is as large, and refills nothing
        # within the test. The consumed requests are carried over.
        window = f"requests_per_unit: {BURST}, unit: month, algorithm: fixed_window"
        for _ in range(2):
            self.write("edge.yaml", RULES.replace(LIMIT, window, 1))
            wait(1.2)
            self.write("edge.yaml", RULES)
            wait(1.2)
        toll.check("limit_changed", 0, 0)


if __name__ == "__main__":
    unittest.main()
