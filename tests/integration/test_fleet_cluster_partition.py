"""The network of a Redis Cluster is split: one primary and one instance on one side, all others on
the other side. The isolated primary answers until it notices, while its replica takes over.
Meanwhile there are two primaries."""

import unittest

from faults import record
from fleet import decided_alone
from harness import require_redis, until, wait
from load import Load, check, throttle
from namespaces import ClusterInside, HeadgateInside, Network
from toll import alone_by_connection, by_connection, longest_refused

RATE, BURST = 2000, 1000
CALM_RATE, CALM_BURST = 50, 20
RULES = ("--rule", f"probe: {RATE}/s burst {BURST}", "--rule", f"calm: {CALM_RATE}/s burst {CALM_BURST}")
SHARED = {"exact", "leased"}
BACK_SECONDS = 10
# The time until the isolated primary stops answering: its cluster-node-timeout of one second, and
# another second to notice.
TWO_PRIMARIES_SECONDS = 2
FEW, MANY = "few", "many"


class ClusterPartition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_redis()
        cls.network = cls.enterClassContext(Network(FEW, MANY))
        cls.network.join(FEW, MANY)
        cls.cluster = cls.enterClassContext(ClusterInside(cls.network, [FEW, MANY, MANY, MANY, MANY, MANY]))
        cls.alone, *cls.others = cls.instances = [cls.instance(place) for place in (FEW, MANY, MANY)]
        for instance in cls.instances:
            until(lambda: instance.metric("headgate_instances") == 3, 10, "the instances know of each other")

    @classmethod
    def instance(cls, place):
        node = cls.cluster.nodes[0 if place == FEW else 1]
        store = f"redis+cluster://{cls.network.home_of(place)}:{node.port}"
        # The timeouts are long because the machine may be busy.
        slow = ("--store-timeout", "500ms", "--store-connect-timeout", "500ms", "--threads", "2")
        return cls.enterClassContext(HeadgateInside(cls.network, place, "--store", store, *slow, *RULES))

    def in_shard(self, shard, name):
        """The first value whose bucket is on this shard."""
        return next(v for v in (f"v{i}" for i in range(1000)) if self.cluster.shard_of(name(v)) == shard)

    def test_the_isolated_primary_is_replaced(self):
        hot = self.in_shard(0, lambda v: f"hg:{{t|{v}}}")
        probe = self.in_shard(0, lambda v: f"hg:{{r|default|probe={v}#0}}")
        calm = self.in_shard(1, lambda v: f"hg:{{r|default|calm={v}#0}}")
        hot_load = self.enterContext(Load(self.instances, {"hot": throttle(hot, BURST, RATE)}))
        probes = [
            self.enterContext(Load([instance], {"probe": check("probe", probe, "default")}, batch=5, pause=0.02))
            for instance in self.instances
        ]
        calm_load = self.enterContext(Load(self.others, {"calm": check("calm", calm, "default")}, batch=5, pause=0.02))

        def modes(load):
            load.take_modes()
            wait(0.3)
            return set(load.take_modes()["probe"])

        def is_shared(load):
            seen = modes(load)
            return seen and seen <= SHARED

        def nobody_is_alone():
            before = decided_alone(self.instances)
            wait(0.5)
            return decided_alone(self.instances) == before

        def admits_much():
            before = hot_load.admitted("hot")
            wait(0.5)
            return hot_load.admitted("hot") - before > 0.8 * 0.5 * RATE

        for load in probes:
            until(lambda: is_shared(load), 10, "all decisions are shared at first")
        self.addCleanup(self.network.plug, MANY, FEW)
        self.network.pull(MANY, FEW)
        replica = self.cluster.nodes[3]
        until(lambda: self.cluster.primary_of(0, [replica]), 20, "the replica takes over")
        until(lambda: modes(probes[0]) == {"local"}, 10, "the instance on the side of the isolated primary decides alone")
        for load in probes[1:]:
            until(lambda: is_shared(load), BACK_SECONDS, "the others are back with the new primary")
        until(admits_much, BACK_SECONDS, "the outstanding leases are known again")

        self.network.plug(MANY, FEW)
        until(lambda: not self.cluster.primary_of(0, [self.cluster.nodes[0]]), 20, "the old primary follows the new one")
        until(lambda: is_shared(probes[0]), BACK_SECONDS, "the instance that was alone is back")
        # Each event loop notices by itself.
        until(nobody_is_alone, BACK_SECONDS, "nobody decides alone any more")

        for load in (hot_load, calm_load, *probes):
            load.stop()
            self.assertEqual(load.ended, 0, "a client lost its connection")
        # Admitted beyond one bucket: by the old primary, for as long as it answered; then the share
        # of the instance that decided alone; and one capacity for the failover, which includes the
        # others' shares.
        alone = [batch for connection in alone_by_connection(probes[0], "probe") for batch in connection]
        seconds = max(batch.answered for batch in alone) - min(batch.sent for batch in alone)
        term = 2 + RATE / BURST * (TWO_PRIMARIES_SECONDS + seconds / len(self.instances))
        refused = max(longest_refused(connection) for probe in probes for connection in by_connection(probe, "probe"))
        record(self, "partition", hot_load.excess("hot", BURST, RATE) / BURST, term, refused, 0)
        self.assertLessEqual(set(calm_load.modes["calm"]), SHARED, "keys of another shard were affected")
        self.assertLessEqual(calm_load.excess("calm", CALM_BURST, CALM_RATE), 0)
        self.assertGreater(calm_load.admitted("calm"), 0.8 * CALM_RATE * calm_load.took)


if __name__ == "__main__":
    unittest.main()
