"""Leases are counted by CLOCK_BOOTTIME. On a machine that is stopped without its clock being told they are dropped as soon
as the store's clock tells, and neither an ordinary pause nor a busy machine is taken for that."""

import os
import struct
import unittest

from fleet import FleetTest
from harness import INTEGRATION, Headgate, require, run, until, wait
from load import Load, check

PAUSE_SECONDS = 3  # longer than a lease lives
MISSED = "headgate_store_pauses_missed_total"
DROPPED = 'headgate_leased_requests_total{event="expired"}'


class FleetWithAStoppedClock(FleetTest):
    RULES = """domain: edge
descriptors:
  - key: hot
    rate_limit: {requests_per_unit: 100000, unit: day, algorithm: fixed_window, on_store_failure: deny}
"""

    def setUp(self):
        require("cc")
        super().setUp()
        library = os.path.join(self.folder, "stopped_clock.so")
        built = run("cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(INTEGRATION, "stopped_clock.c"), "-ldl")
        self.assertEqual(built.returncode, 0, built.stderr)
        self.clock = os.path.join(self.folder, "stopped")
        self.stop_clock(0)
        self.server = self.enterContext(
            Headgate(
                *("--rules", self.rules, "--store", f"redis://127.0.0.1:{self.redis.port}", "--threads", "1", *self.TIMES),
                # A sanitizer would be first.
                env={"LD_PRELOAD": library, "STOPPED_CLOCK": self.clock, "ASAN_OPTIONS": "verify_asan_link_order=0"},
            )
        )
        self.load = self.enterContext(Load([self.server], {"hot": check("hot", "key")}, batch=5, pause=0.01))
        until(lambda: self.load.take_modes()["hot"]["leased"], 20, "requests are decided from leases")
        wait(2.5)

    def stop_clock(self, seconds):
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb") as file:
            file.write(struct.pack("=q", int(seconds * 1e9)))

    def sleep(self, told):
        """As a machine does."""
        self.server.pause()
        wait(PAUSE_SECONDS)
        if not told:
            self.stop_clock(PAUSE_SECONDS)
        self.server.resume()

    def test_a_pause_that_the_clock_missed_costs_the_leases(self):
        before = self.server.metric(DROPPED)
        self.assertEqual(self.server.metric(MISSED), 0)
        self.sleep(told=False)
        until(lambda: self.server.metric(MISSED) == 1, 10, "it is seen")
        self.assertGreater(self.server.metric(DROPPED), before, "what was held is dropped")
        self.assertIn("clock.pause_missed", self.server.errors())
        self.load.take_modes()
        until(lambda: self.load.take_modes()["hot"]["leased"], 10, "there are leases again")
        self.assertEqual(self.server.metric(MISSED), 1, "once")

    def test_a_pause_that_the_clock_counts_is_none_to_speak_of(self):
        self.sleep(told=True)
        wait(3)
        self.assertEqual(self.server.metric(MISSED), 0, self.server.errors())


if __name__ == "__main__":
    unittest.main()
