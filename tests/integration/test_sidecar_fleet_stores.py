"""Sidecars that share one pool in other stores than a single Redis: a Redis Cluster, servers with a
Sentinel, a ring, and DynamoDB. See test_sidecar_fleet.py for Redis and ZooKeeper."""

import os
import unittest
import unittest.mock

from dynamodb import KEYS, NO_KEYS, Dynalite
from harness import BINARY, PATIENT, RedisCluster, RedisSentinel, RedisServer, require_redis, run, until
from sidecar_fleet import CAPACITY, REPLICAS, TOLERANCE, Load, SidecarFleet

POOL = "hg:{f|default}"  # its key in Redis
EXAMPLE_SECONDS = 5
LOAD_SECONDS = 2


class OnStores(SidecarFleet):
    def start(self, store, *args, **options):
        super().start(store, *PATIENT, *args, **options)

    def worked_example_on(self, store):
        """Two cycles divide what was asked at all replicas."""
        self.start(store, "--cycle", f"{EXAMPLE_SECONDS}s")
        self.worked_example(EXAMPLE_SECONDS, cycles=3)

    def skewed_load_on(self, store):
        self.start(store, "--cycle", f"{LOAD_SECONDS}s")
        self.skewed_load(cycles=4)

    def wait_until_acquainted(self):
        """Waits until each replica knows of the others, so that it can take its part of the capacity without the store."""
        for place in range(REPLICAS):
            until(lambda place=place: self.metric("headgate_instances", (place,)) == REPLICAS, 20, "the instances are counted")

    def is_alone(self, place):
        return self.metric("headgate_fleet_pool_alone", (place,)) == 1

    def failover_under_skewed_load(self, primary, replica):
        """The bound of the guide in the cycle of a return: one more capacity. Requests of others that were
        admitted meanwhile count, so a client that was quiet finds its share or the rest."""
        self.start(self.store, "--cycle", "1h")
        self.wait_until_acquainted()
        quiet = self.ask("quiet", 1, (0,))
        self.assertEqual(quiet, 1)
        with Load(self.sidecars) as load:
            until(lambda: load.asked >= 200, 20, "the load runs")
            primary.kill()
            for sidecar in self.sidecars:
                until(lambda sidecar=sidecar: "fleet_pool.left" in sidecar.errors(), 20, "each replica has a pool of its own")
            until(lambda: replica.command("ROLE").startswith("master"), 30, "the replica is promoted")
            for place in range(REPLICAS):
                until(lambda place=place: not self.is_alone(place), 20, "each replica has rejoined")
            asked = load.asked
            until(lambda: load.asked >= asked + 200, 20, "the load runs again")
        self.assertEqual(load.errors, [])
        self.assertEqual(self.cycles(), 0, "the replica of the store has the running cycle")
        total = sum(load.passed.values()) + quiet
        rest = self.ask("quiet", CAPACITY, (0, 1, 2))
        share = CAPACITY // 4
        self.assertLessEqual(rest, share - quiet)
        self.assertGreaterEqual(rest, min(share - quiet, CAPACITY - total) - TOLERANCE)
        self.assertLessEqual(total + rest, 2 * CAPACITY, load.passed)
        for sidecar in self.sidecars:
            self.assertIn("fleet_pool.rejoined", sidecar.errors())


class OnACluster(OnStores):
    @classmethod
    def setUpClass(cls):
        require_redis()
        cls.cluster = cls.enterClassContext(RedisCluster())

    def setUp(self):
        self.cluster.wait_until_well()
        self.shard = self.cluster.shard_of(POOL)
        for key in (POOL, "hg:instances"):
            self.cluster.primary_of(self.cluster.shard_of(key)).command("DEL", key)
        self.store = f"redis+cluster://127.0.0.1:{self.cluster.nodes[0].port},127.0.0.1:{self.cluster.nodes[1].port}"

    def test_the_worked_example(self):
        self.worked_example_on(self.store)
        self.assertEqual(self.cluster.primary_of(self.shard).command("EXISTS", POOL), "1")

    def test_skewed_load(self):
        self.skewed_load_on(self.store)

    def test_the_pool_moves_to_another_shard(self):
        """A moving slot is not an outage: nobody gets a fresh share."""
        slot = self.cluster.slot_of(POOL)
        there = next(shard for shard in range(self.cluster.SHARDS) if shard != self.shard)
        source, target = self.cluster.primary_of(self.shard), self.cluster.primary_of(there)
        self.start(self.store, "--cycle", "1h")
        passed = self.ask("A", 10, (0, 1, 2))
        self.cluster.begin_move(slot, source, target)
        self.addCleanup(self.move_back, slot, source, target)
        passed += self.ask("A", 5, (0, 1, 2))
        self.cluster.move_keys(slot, source, target)
        passed += self.ask("A", 5, (0, 1, 2))
        self.cluster.end_move(slot, source, target)
        self.assertEqual(target.command("EXISTS", POOL), "1")
        self.assertEqual(passed, 20)
        passed += self.ask("A", CAPACITY, (0, 1, 2))
        self.assertLessEqual(passed, CAPACITY)
        self.assertGreaterEqual(passed, CAPACITY - TOLERANCE)
        self.assertEqual(self.metric("headgate_fleet_pool_alone_requests_total"), 0)

    def test_a_failover_under_skewed_load(self):
        primary = self.cluster.primary_of(self.shard)
        replica = next(node for node in self.cluster.shard_nodes(self.shard) if node is not primary)
        self.addCleanup(primary.start)
        self.failover_under_skewed_load(primary, replica)

    def move_back(self, slot, source, target):
        if target.command("EXISTS", POOL) == "1":
            self.cluster.begin_move(slot, target, source)
            self.cluster.move_keys(slot, target, source)
            self.cluster.end_move(slot, target, source)


class OnASentinelSet(OnStores):
    def setUp(self):
        require_redis()
        self.primary = self.enterContext(RedisServer())
        self.replica = self.enterContext(RedisServer("--replicaof", "127.0.0.1", str(self.primary.port), "--repl-diskless-sync-delay", "0"))
        until(lambda: "master_link_status:up" in self.replica.command("INFO", "replication"), 20, "the replica follows")
        self.sentinel = self.enterContext(
            RedisSentinel(
                f"sentinel monitor main 127.0.0.1 {self.primary.port} 1\n"
                "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n"
            )
        )
        until(lambda: str(self.replica.port) in self.sentinel.command("SENTINEL", "REPLICAS", "main"), 20, "the sentinel knows the replica")
        self.store = f"redis+sentinel://127.0.0.1:{self.sentinel.port}/main"

    def test_a_failover_under_skewed_load(self):
        self.failover_under_skewed_load(self.primary, self.replica)


class OnARing(OnStores):
    def setUp(self):
        require_redis()
        self.servers = [self.enterContext(RedisServer()) for _ in range(2)]
        self.store = "redis+ring://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def with_pool(self):
        return [server.command("EXISTS", POOL) == "1" for server in self.servers]

    def test_the_worked_example(self):
        self.worked_example_on(self.store)
        self.assertEqual(sum(self.with_pool()), 1)

    def test_skewed_load(self):
        self.skewed_load_on(self.store)

    def test_only_the_server_with_the_pool_matters(self):
        self.start(self.store, "--cycle", "1h")
        self.wait_until_acquainted()
        self.assertEqual(self.ask("A", 9, (0, 1, 2)), 9)
        place = self.with_pool().index(True)
        self.servers[1 - place].kill()
        passed = 9 + self.ask("A", CAPACITY, (0, 1, 2))
        self.assertLessEqual(passed, CAPACITY)
        self.assertGreaterEqual(passed, CAPACITY - TOLERANCE)
        self.assertEqual(self.metric("headgate_fleet_pool_alone"), 0)
        self.servers[place].kill()

        def is_alone():
            self.ask("A", 1, (0,))
            return self.is_alone(0)

        until(is_alone, 20, "the replica has a pool of its own")
        self.assertLessEqual(passed + self.ask("A", CAPACITY, (0,)), CAPACITY + CAPACITY // REPLICAS + 1)


class OnDynamoDb(OnStores):
    def setUp(self):
        self.dynamodb = self.enterContext(Dynalite())
        self.store = self.dynamodb.url()
        self.enterContext(unittest.mock.patch.dict(os.environ, {**NO_KEYS, **KEYS}))
        done = run(BINARY, "store", "create-table", self.store)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_worked_example(self):
        self.worked_example_on(self.store)

    def test_skewed_load(self):
        self.skewed_load_on(self.store)


if __name__ == "__main__":
    unittest.main()
