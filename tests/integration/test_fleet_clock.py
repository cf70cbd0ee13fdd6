"""Leases are timed by CLOCK_BOOTTIME. If a machine is paused without its clock noticing, its leases
are dropped as soon as the store's clock reveals the pause. An ordinary pause or a busy machine is
not mistaken for this."""

import unittest

from clocks import ShiftedClock
from fleet import FleetTest
from harness import Headgate, RedisServer, until, wait
from load import Load, check
from toll import BURST, LEASE_SECONDS, RATE, FaultTest, Toll

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
        super().setUp()
        self.clock = ShiftedClock(self, self.folder)
        self.server = self.enterContext(
            Headgate(
                *("--rules", self.rules, "--store", f"redis://127.0.0.1:{self.redis.port}", "--threads", "1", *self.TIMES),
                env=self.clock.env,
            )
        )
        self.load = self.enterContext(Load([self.server], {"hot": check("hot", "key")}, batch=5, pause=0.01))
        until(lambda: self.load.take_modes()["hot"]["leased"], 20, "requests are decided from leases")
        wait(2.5)

    def sleep(self, told):
        """Advances the clocks as the sleep of a machine does."""
        self.server.pause()
        wait(PAUSE_SECONDS)
        if not told:
            self.clock.set(boottime=-PAUSE_SECONDS)
        self.server.resume()

    def test_a_pause_that_the_clock_missed_drops_the_leases(self):
        before = self.server.metric(DROPPED)
        self.assertEqual(self.server.metric(MISSED), 0)
        self.sleep(told=False)
        until(lambda: self.server.metric(MISSED) == 1, 10, "the pause is detected")
        self.assertGreater(self.server.metric(DROPPED), before, "held leases are dropped")
        self.assertIn("clock.pause_missed", self.server.errors())
        self.load.take_modes()
        until(lambda: self.load.take_modes()["hot"]["leased"], 10, "there are leases again")
        self.assertEqual(self.server.metric(MISSED), 1, "once")

    def test_a_pause_that_the_clock_counts_is_not_reported(self):
        self.sleep(told=True)
        wait(3)
        self.assertEqual(self.server.metric(MISSED), 0, self.server.errors())


class ShiftedClocks(FaultTest):
    TIMES = ("--store-timeout", "300ms", "--store-connect-timeout", "2s")

    def setUp(self):
        super().setUp()
        self.clock = ShiftedClock(self, self.folder)

    def of_the_store(self, name, seconds, term, refused):
        self.redis = self.enterContext(RedisServer(env=self.clock.env))
        toll = self.begin()
        self.clock.set(time_of_day=seconds)
        wait(LEASE_SECONDS + 1)
        self.until_shared(toll)
        toll.check(name, term, refused)

    def test_the_clock_of_the_store_is_set_forward(self):
        self.of_the_store("clock_forward", 0.25, 0.25 * RATE / BURST, 0)

    def test_the_clock_of_the_store_is_set_far_forward(self):
        self.of_the_store("clock_far_forward", 60, 1, 0)

    def test_the_clock_of_the_store_is_set_back(self):
        self.of_the_store("clock_back", -1, 0, 0)

    def test_a_pause_that_the_clock_missed(self):
        paused = self.enterContext(self.clocked_instance())
        self.instances = [self.instance(), paused]
        toll = Toll(self, self.instances)
        wait(1.5)
        paused.pause()
        wait(LEASE_SECONDS + 1)
        self.clock.set(boottime=-(LEASE_SECONDS + 1))
        held = 1
        paused.resume()
        until(lambda: paused.metric("headgate_store_pauses_missed_total"), 10, "the pause is detected")
        wait(1)
        toll.check("clock_missed", held, 0)

    def clocked_instance(self):
        store = f"redis://127.0.0.1:{self.redis.port}"
        return Headgate("--rules", self.rules, "--store", store, "--threads", "2", *self.TIMES, env=self.clock.env)


if __name__ == "__main__":
    unittest.main()
