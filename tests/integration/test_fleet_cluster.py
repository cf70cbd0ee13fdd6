"""Three instances that share a Redis Cluster of six nodes enforce one limit, whatever happens to an
instance or a server. The load is on one hot key, which is leased, and on keys in other shards,
which must not be affected."""

import os
import signal
import tempfile
import time
import unittest

from faults import record
from fleet import decided_alone
from fleet_rights import ACL_CLUSTER_COMMANDS, ACL_COMMANDS, ACL_KEYS
from harness import Headgate, RedisCluster, require_redis, until, wait
from load import Load, check
from toll import alone_by_connection, by_connection, longest_refused, outage_term

# A burst of half a second, so that a machine that is busy for less than that loses nothing.
RATE, BURST = 2000, 1000
CALM_RATE, CALM_BURST = 50, 20
KEPT = 60  # a day: nothing refills within a test
RULES = f"""domain: edge
descriptors:
  - key: hot
    rate_limit: {{requests_per_unit: {RATE}, unit: second, algorithm: token_bucket, burst: {BURST}}}
  - key: calm
    rate_limit: {{requests_per_unit: {CALM_RATE}, unit: second, algorithm: token_bucket, burst: {CALM_BURST}}}
  - key: kept
    rate_limit: {{requests_per_unit: {KEPT}, unit: day, algorithm: token_bucket, sharing: exact}}
"""
SHARED = {"exact", "leased"}
LEASE_SECONDS = 2  # life of a lease at the store


class FleetOnACluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_redis()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.rules = os.path.join(folder, "edge.yaml")
        with open(cls.rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        cls.cluster = cls.enterClassContext(RedisCluster())

    def setUp(self):
        self.cluster.wait_until_well()
        # The instances of the previous test were killed, and still count.
        self.cluster.primary_of(self.cluster.shard_of("hg:instances")).command("DEL", "hg:instances")
        # Each test has a bucket of its own, keys in the same shard, and keys in other shards.
        self.key = self.id().split(".")[-1]
        self.shard = self.cluster.shard_of(self.bucket(self.key))
        near = (f"{self.key}{i}" for i in range(1000))
        self.near = next(v for v in near if self.cluster.shard_of(self.bucket(v)) == self.shard)
        far = (f"{self.key}{i}" for i in range(1000))
        self.far = [v for v in far if self.cluster.shard_of(f"hg:{{r|edge|calm={v}#0}}") != self.shard][:30]
        nodes = ",".join(f"127.0.0.1:{node.port}" for node in self.cluster.nodes[:2])
        self.instances = [self.instance(store=f"redis+cluster://{nodes}") for _ in range(3)]

    @staticmethod
    def bucket(value):
        """The name of the bucket in the store."""
        return f"hg:{{r|edge|hot={value}#0}}"

    def instance(self, store):
        # The timeouts are long because the machine may be busy, and these tests are not about
        # timeouts.
        slow = ("--store-timeout", "1s", "--store-connect-timeout", "1s", "--threads", "2")
        return self.enterContext(Headgate("--rules", self.rules, "--store", store, *slow))

    def start_load(self):
        """Load on the hot key, on one key in the same shard that reports its mode, and on many keys
        in other shards."""
        self.hot = self.enterContext(Load(self.instances, {self.key: check("hot", self.key)}))
        self.beside = self.enterContext(Load(self.instances, {self.near: check("hot", self.near)}, batch=5, pause=0.02))
        self.calm = self.enterContext(Load(self.instances, {v: check("calm", v) for v in self.far}, batch=5, pause=0.02))

    def wait_until_acquainted(self):
        """Waits until each instance knows of the others, so that it can take its share of a limit without the store."""
        for instance in self.instances:
            until(lambda: instance.metric("headgate_instances") == 3, 10, "the instances know of each other")

    def stop_load(self, term=0):
        """The bound of one bucket holds over every interval, plus `term` capacities if given. If
        `term` is a function, it is called after the load has ended."""
        for load in (self.hot, self.beside, self.calm):
            load.stop()
        term = term() if callable(term) else term
        self.assertLessEqual(self.hot.excess(self.key, (1 + term) * BURST, RATE), 0)
        self.assertLessEqual(self.beside.excess(self.near, (1 + term) * BURST, RATE), 0)
        for value in self.far:
            self.assertLessEqual(self.calm.excess(value, CALM_BURST, CALM_RATE), 0, value)
            self.assertGreater(self.calm.admitted(value), 0, value)
        self.assertLessEqual(set().union(*self.calm.modes.values()), SHARED, "keys of other shards were affected")
        return term

    def stop_load_of_a_failover(self, name, began, promoted):
        """The term of an outage that began when the primary died, for a history that lacks its last
        writes. See outage_term for its parts. A key that is overloaded all the time uses half of
        it: its shares begin empty, because the bucket was empty."""
        term = self.stop_load(lambda: outage_term([(began, promoted)], alone_by_connection(self.hot, self.key), BURST, RATE, lost_end=1))
        refused = max(map(longest_refused, by_connection(self.beside, self.near)))
        record(self, name, self.hot.excess(self.key, BURST, RATE) / BURST, term, refused, 0)

    def admits_again(self, seconds):
        """Within this many seconds the store decides the keys of the shard again, and a request
        passes."""

        def is_shared():
            before = self.hot.admitted(self.key)
            self.beside.take_modes()
            wait(0.5)
            modes = self.beside.take_modes()[self.near]
            return self.hot.admitted(self.key) > before and modes and set(modes) <= SHARED

        until(is_shared, seconds, "the shard's keys are decided as before")

    def test_the_whole_limit_is_admitted_and_no_more(self):
        self.start_load()
        wait(3)
        self.stop_load()
        self.assertGreaterEqual(self.hot.admitted(self.key), 0.9 * RATE * self.hot.took)
        self.assertGreater(self.hot.asked, 1.5 * self.hot.admitted(self.key), "the load was too low")

    def test_an_instance_dies_with_its_leases(self):
        self.start_load()
        wait(1)
        self.instances.pop().stop(signal.SIGKILL)
        wait(LEASE_SECONDS + 0.3)
        before, began = self.hot.admitted(self.key), time.monotonic()
        wait(1)
        afterwards = (self.hot.admitted(self.key) - before) / (time.monotonic() - began)
        self.stop_load()
        self.assertGreaterEqual(afterwards, 0.8 * RATE, "the others admit the share of the dead one")
        self.assertEqual(self.hot.ended, 1)

    def test_an_instance_is_paused_for_longer_than_its_leases_live(self):
        self.start_load()
        wait(1)
        self.instances[0].pause()
        wait(LEASE_SECONDS + 1)
        self.instances[0].resume()
        wait(0.7)
        self.stop_load()
        self.assertEqual(self.hot.ended, 0)

    def test_the_primary_dies(self):
        self.wait_until_acquainted()
        primary = self.cluster.primary_of(self.shard)
        others = [node for node in self.cluster.shard_nodes(self.shard) if node is not primary]
        self.addCleanup(primary.start)
        self.start_load()
        wait(1)
        began = time.monotonic()
        primary.kill()
        until(lambda: self.cluster.primary_of(self.shard, others), 20, "the replica takes over")
        promoted = time.monotonic()
        self.admits_again(10)
        wait(1)
        self.stop_load_of_a_failover("failover_local", began, promoted)
        self.assertEqual(self.hot.ended, 0)

    def test_the_primary_hands_over(self):
        self.wait_until_acquainted()
        replica = self.cluster.replicas_of(self.shard)[0]
        self.start_load()
        wait(1)
        self.assertEqual(replica.command("CLUSTER", "FAILOVER"), "OK")
        until(lambda: self.cluster.primary_of(self.shard, [replica]), 20, "the replica takes over")
        self.admits_again(10)
        # No request had to wait: no instance decided alone.
        local = sum(instance.metric('headgate_shared_decisions_total{mode="local"}') for instance in self.instances)
        self.stop_load(term=1 if local else 0)
        self.assertEqual(self.hot.ended, 0)

    def test_slots_move_there_and_back_while_requests_run(self):
        self.wait_until_acquainted()
        there = next(shard for shard in range(self.cluster.SHARDS) if shard != self.shard)
        source, target = self.cluster.primary_of(self.shard), self.cluster.primary_of(there)
        kept = next(v for v in (f"{self.key}{i}" for i in range(1000)) if self.cluster.shard_of(f"hg:{{r|edge|kept={v}#0}}") == self.shard)
        names = [self.bucket(self.key), self.bucket(self.near), f"hg:{{r|edge|kept={kept}#0}}"]
        slots = [self.cluster.slot_of(name) for name in names]
        passed = 0

        def ask_kept(requests):
            answers = [self.instances[i % 3].check("edge", kept=kept) for i in range(requests)]
            self.assertEqual({fields["x-ratelimit-mode"] for _, fields, _ in answers}, {"exact"})
            return sum(status == 200 for status, _, _ in answers)

        self.start_load()
        wait(1)
        for node, other in ((source, target), (target, source)):
            passed += ask_kept(9)
            for slot in slots:
                self.cluster.begin_move(slot, node, other)
            passed += ask_kept(9)
            wait(0.3)
            for slot in slots:
                self.cluster.move_keys(slot, node, other)
            passed += ask_kept(9)
            for slot in slots:
                self.cluster.end_move(slot, node, other)
            self.assertEqual(other.command("EXISTS", names[2]), "1")
            self.assertGreater(int(other.command("PTTL", names[2])), 0)
            self.assertEqual(node.command("EXISTS", names[2]).split()[0], "MOVED")
            self.admits_again(10)
        # Consumed requests stay known wherever the bucket is.
        self.assertEqual(passed + ask_kept(12), KEPT)
        self.stop_load()
        self.assertEqual(self.hot.ended, 0)
        self.assertEqual(decided_alone(self.instances), 0, "a moving slot is no outage")
        self.assertGreater(sum(instance.metric("headgate_store_redirects_total") for instance in self.instances), 0)

    def test_the_primary_falls_silent(self):
        self.wait_until_acquainted()
        primary = self.cluster.primary_of(self.shard)
        others = [node for node in self.cluster.shard_nodes(self.shard) if node is not primary]
        self.addCleanup(primary.resume)
        self.start_load()
        wait(1)
        began = time.monotonic()
        primary.pause()
        until(lambda: self.cluster.primary_of(self.shard, others), 20, "the replica takes over")
        promoted = time.monotonic()
        self.admits_again(10)
        # When the old primary wakes up, its data is too old for all instances.
        primary.resume()
        wait(1)
        self.stop_load_of_a_failover("silent_primary", began, promoted)
        self.assertEqual(self.hot.ended, 0)

    def test_a_user_with_the_documented_rights_is_enough(self):
        for node in self.cluster.nodes:
            rights = f"on >sesame resetkeys {ACL_KEYS} {ACL_COMMANDS} {ACL_CLUSTER_COMMANDS}"
            self.assertEqual(node.command("ACL", "SETUSER", "headgate", *rights.split()), "OK")
        instance = self.instance(store=f"redis+cluster://headgate:sesame@127.0.0.1:{self.cluster.port}")
        # Also holds while a slot moves.
        shard = self.cluster.shard_of(f"hg:{{r|edge|calm={self.far[0]}#0}}")
        source, target = self.cluster.primary_of(shard), self.cluster.primary_of(self.shard)
        slot = self.cluster.slot_of(f"hg:{{r|edge|calm={self.far[0]}#0}}")
        self.cluster.begin_move(slot, source, target)
        try:
            for value in self.far:
                self.assertEqual(instance.check("edge", calm=value)[1]["x-ratelimit-mode"], "exact")
            self.assertEqual(instance.check("edge", hot=self.near)[1]["x-ratelimit-mode"], "exact")
        finally:
            for node in (source, target):
                node.command("CLUSTER", "SETSLOT", str(slot), "STABLE")
        self.assertGreater(instance.metric("headgate_store_redirects_total"), 0)
        self.assertEqual(instance.metric("headgate_store_alarms_total"), 0, instance.errors())
        self.assertEqual(instance.metric('headgate_store_calls_total{outcome="denied"}'), 0, instance.errors())


if __name__ == "__main__":
    unittest.main()
