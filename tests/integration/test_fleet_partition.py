"""Two instances and their Redis on networks of their own: a cable is pulled and plugged in again.
The links are real, so the kernel handles their connections as on real machines: packets get lost, or
sending fails with "no route"."""

import time
import unittest

from faults import record
from fleet import decided_alone
from harness import require_redis, until, wait
from load import Load, check, throttle
from namespaces import HeadgateInside, Network, RedisInside
from toll import alone_by_connection, by_connection, longest_refused, outage_term

# A burst of half a second, so that a machine that is busy for less than that loses nothing.
RATE, BURST = 2000, 1000
SHARED = {"exact", "leased"}
BACK_SECONDS = 10


class Partition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_redis()
        cls.network = cls.enterClassContext(Network("store", "a", "b"))
        cls.network.join("store", "a")
        cls.network.join("store", "b")
        cls.redis = cls.enterClassContext(RedisInside(cls.network, "store"))
        cls.instances = [cls.enterClassContext(cls.instance(name)) for name in ("a", "b")]
        for instance in cls.instances:
            until(lambda: instance.metric("headgate_instances") == 2, 10, "the instances know of each other")

    @classmethod
    def instance(cls, name):
        store = f"redis://{cls.network.address_of('store', name)}:{cls.redis.port}"
        # The timeouts are long because the machine may be busy.
        slow = ("--store-timeout", "300ms", "--store-connect-timeout", "500ms", "--threads", "2")
        return HeadgateInside(cls.network, name, "--store", store, *slow, "--rule", f"probe: {RATE}/s burst {BURST}")

    def setUp(self):
        self.key = self.id().split(".")[-1]
        self.hot = self.enterContext(Load(self.instances, {self.key: throttle(self.key, BURST, RATE)}, connections=2))
        # Uses keys of its own, so that it takes nothing from the other load's keys.
        self.probes = [
            self.enterContext(Load([instance], {"probe": check("probe", f"{self.key}{i}", "default")}, batch=5, connections=2, pause=0.02))
            for i, instance in enumerate(self.instances)
        ]
        # An event loop that had no load in the previous test may still have to notice that the
        # store is back.
        until(self.is_well, BACK_SECONDS, "all decisions are shared at first")

    def modes(self, instance, seconds):
        """The modes of the instance in the next seconds."""
        probe = self.probes[instance]
        probe.take_modes()
        wait(seconds)
        return set(probe.take_modes()["probe"])

    def is_well(self):
        before = decided_alone(self.instances)
        wait(0.3)
        return decided_alone(self.instances) == before

    def is_back(self, instance):
        modes = self.modes(instance, 0.2)
        return modes and modes <= SHARED

    def stop(self):
        """Returns for how long a client with room was refused."""
        for load in (self.hot, *self.probes):
            load.stop()
            self.assertEqual(load.ended, 0, "a client lost its connection")
        self.assertGreater(self.hot.admitted(self.key), 0.5 * RATE * self.hot.took)
        return max(longest_refused(batches) for probe in self.probes for batches in by_connection(probe, "probe"))

    def check(self, name, term, refused):
        """In every interval at most one bucket passes, plus `term` capacities."""
        record(self, name, self.hot.excess(self.key, BURST, RATE) / BURST, term, refused, 0)

    def share_since(self, began):
        """The share of the instance that was cut off: of one capacity, and of the refill until
        it no longer decided alone."""
        alone = [batch.answered for batches in alone_by_connection(self.probes[0], "probe") for batch in batches]
        return (1 + RATE * max([0, *(answered - began for answered in alone)]) / BURST) / len(self.instances)

    def during(self, pulled):
        """One instance is cut off for longer than a lease lives. It continues with its share, and
        the other with the store."""
        self.addCleanup(self.network.plug, *pulled)
        began = time.monotonic()
        self.network.pull(*pulled)
        # The instance may spend the leases that it holds until they expire.
        until(lambda: self.modes(0, 0.8) == {"local"}, 8, "the instance that is cut off decides alone")
        self.assertLessEqual(self.modes(1, 0.5), SHARED, "the other does not notice")
        self.network.plug(*pulled)
        until(lambda: self.is_back(0), BACK_SECONDS, "the instance that was cut off is back")
        until(self.is_well, BACK_SECONDS, "nobody decides alone any more")
        refused = self.stop()
        self.check("cut_off", self.share_since(began), refused)

    def test_the_cable_is_pulled_at_the_store(self):
        self.during(("store", "a"))

    def test_the_cable_is_pulled_at_the_instance(self):
        self.during(("a", "store"))

    def test_the_cable_is_loose(self):
        self.addCleanup(self.network.plug, "store", "a")
        began = time.monotonic()
        for _ in range(4):
            self.network.pull("store", "a")
            wait(0.15)
            self.network.plug("store", "a")
            wait(0.5)
        until(lambda: self.is_back(0), BACK_SECONDS, "the instance with the loose cable is back")
        refused = self.stop()
        self.check("cut_off", self.share_since(began), refused)

    def test_nobody_reaches_the_store(self):
        began = time.monotonic()
        for name in ("a", "b"):
            self.addCleanup(self.network.plug, "store", name)
            self.network.pull("store", name)
        for i in (0, 1):
            until(lambda: self.modes(i, 0.2) == {"local"}, 5, "each decides alone")
        wait(1)
        for name in ("a", "b"):
            self.network.plug("store", name)
        plugged = time.monotonic()
        for i in (0, 1):
            until(lambda: self.is_back(i), BACK_SECONDS, "both are back")
        refused = self.stop()
        alone = [batches for probe in self.probes for batches in alone_by_connection(probe, "probe")]
        self.check("unreachable", outage_term([(began, plugged)], alone, BURST, RATE), refused)


if __name__ == "__main__":
    unittest.main()
