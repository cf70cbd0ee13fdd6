"""A new history of the store locks no client out and adds at most what docs/guides/fleet.md states,
whatever caused it."""

import os
import tempfile
import time
import unittest

from harness import RedisCluster, RedisServer, require_redis, until, wait
from history import LEASE_SECONDS, START_SECONDS, Users, check_event

RESTART_SECONDS = LEASE_SECONDS + START_SECONDS


class HistoryOfAServer(unittest.TestCase):
    def setUp(self):
        require_redis()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.redis = self.enterContext(RedisServer("--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "1"))
        self.users = Users(self, self.folder, f"redis://127.0.0.1:{self.redis.port}")

    def replication_id(self):
        info = self.redis.command("INFO", "replication")
        return next(line for line in info.split() if line.startswith("master_replid:"))

    def assert_nobody_learned(self):
        for what in ("restarted", "promoted", "replaced"):
            self.assertEqual(self.users.learned(what), 0, what)

    def test_a_first_replica_is_attached_and_lost(self):
        before, began = self.replication_id(), time.monotonic()
        replica = self.enterContext(RedisServer("--replicaof", f"127.0.0.1 {self.redis.port}"))
        until(lambda: self.replication_id() != before, 20, "the server has another id")
        until(lambda: "master_link_status:up" in replica.command("INFO", "replication"), 20, "the replica follows")
        attached = self.replication_id()
        replica.kill()
        until(lambda: self.replication_id() != attached, 20, "its backlog is freed, and it has yet another id")
        waited, extra = self.users.after(began, began)
        # The keys of the first requests are asked for again last; the test requires that none of
        # them was refused.
        waited = {who: seconds for who, seconds in waited.items() if who.endswith("warm")}
        check_event(self, "replica_attached", waited, extra, lock_out=0, capacities=0)
        self.assert_nobody_learned()

    def test_all_keys_are_flushed(self):
        began = time.monotonic()
        self.assertEqual(self.redis.command("FLUSHALL"), "OK")
        waited, extra = self.users.after(began, time.monotonic())
        check_event(self, "flushed", waited, extra, lock_out=0, capacities=1)
        self.assert_nobody_learned()

    def test_live_keys_are_evicted(self):
        began = time.monotonic()
        self.redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory", "1")
        until(lambda: int(self.redis.command("INFO", "stats").split("evicted_keys:")[1].split()[0]) > 20, 20, "keys are evicted")
        self.redis.command("CONFIG", "SET", "maxmemory", "0")
        waited, extra = self.users.after(began, time.monotonic())
        # While the store is full it refuses every write, so its breaker stays open for a while
        # afterwards.
        check_event(self, "evicted", waited, extra, lock_out=LEASE_SECONDS, capacities=1)
        self.assert_nobody_learned()

    def test_it_restarts_empty(self):
        began = time.monotonic()
        self.redis.kill()
        self.redis.start()
        waited, extra = self.users.after(began, time.monotonic())
        check_event(self, "restart_empty", waited, extra, lock_out=RESTART_SECONDS, capacities=1)
        self.assertEqual(self.users.learned("restarted"), len(self.users.instances))

    def test_it_restarts_from_a_file(self):
        self.assertEqual(self.redis.command("SAVE"), "OK")
        wait(0.5)
        began = time.monotonic()
        self.redis.kill()
        self.redis.start()
        waited, extra = self.users.after(began, time.monotonic())
        check_event(self, "restart_from_file", waited, extra, lock_out=RESTART_SECONDS, capacities=1)
        self.assertEqual(self.users.learned("restarted"), len(self.users.instances))


class HistoryOfACluster(unittest.TestCase):
    def setUp(self):
        require_redis()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.cluster = self.enterContext(RedisCluster())
        self.users = Users(
            self, self.folder, f"redis+cluster://127.0.0.1:{self.cluster.port}", lambda key: self.cluster.shard_of(key) == 1
        )

    def test_slots_move_between_live_primaries(self):
        source, target = self.cluster.primary_of(1), self.cluster.primary_of(2)
        began = time.monotonic()
        for slot in sorted({self.cluster.slot_of(key) for key in self.users.keys()}):
            self.cluster.begin_move(slot, source, target)
            self.cluster.move_keys(slot, source, target)
            self.cluster.end_move(slot, source, target)
        waited, extra = self.users.after(began, time.monotonic())
        check_event(self, "slots_moved", waited, extra, lock_out=0, capacities=0)
        self.assertEqual(self.users.learned("promoted"), 0)

    def test_a_primary_dies_and_its_replica_takes_over(self):
        primary = self.cluster.primary_of(1)
        others = [node for node in self.cluster.shard_nodes(1) if node is not primary]
        began = time.monotonic()
        primary.kill()
        until(lambda: self.cluster.primary_of(1, others), 20, "the replica takes over")
        waited, extra = self.users.after(began, time.monotonic())
        check_event(self, "failover", waited, extra, lock_out=LEASE_SECONDS, capacities=1, found=1)
        self.assertEqual(self.users.learned("promoted"), len(self.users.instances))

    def test_a_primary_hands_over(self):
        replica = self.cluster.replicas_of(1)[0]
        began = time.monotonic()
        self.assertEqual(replica.command("CLUSTER", "FAILOVER"), "OK")
        until(lambda: self.cluster.primary_of(1, [replica]), 20, "the replica takes over")
        waited, extra = self.users.after(began, time.monotonic())
        check_event(self, "handed_over", waited, extra, lock_out=LEASE_SECONDS, capacities=1, found=1)


if __name__ == "__main__":
    unittest.main()
