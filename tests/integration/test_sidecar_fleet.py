"""Sidecars that share one pool through a store: the worked example under skewed load, a replica that
is killed, and a store that stops."""

import tempfile
import unittest

from harness import BINARY, RedisServer, free_port, require_redis, run, until
from sidecar_fleet import CAPACITY, REPLICAS, TOLERANCE, SidecarFleet


class Fleet(SidecarFleet):
    def test_the_worked_example_under_skewed_load(self):
        require_redis()
        with RedisServer() as redis:
            self.start(f"redis://127.0.0.1:{redis.port}", "--cycle", "6s")
            self.worked_example(6)
            self.assertIn("hg:{f|default}", redis.command("KEYS", "*"))

    def test_the_worked_example_with_zookeeper(self):
        from zookeeper import ZooKeeperServer

        with ZooKeeperServer() as zookeeper:
            self.start(zookeeper.url(), "--cycle", "8s")
            self.worked_example(8)

    def test_a_killed_replica_leaves_the_capacity_to_the_others(self):
        require_redis()
        with RedisServer() as redis:
            self.start(f"redis://127.0.0.1:{redis.port}", "--cycle", "4s")
            for place in range(REPLICAS):
                self.assertEqual(self.ask("A", 3, (place,)), 3)
            self.sidecars[0].process.kill()
            cycle = self.cycle(1)
            self.assertLessEqual(self.ask("A", 40, (1, 2)), CAPACITY - 9)
            until(lambda: self.cycle(1) > cycle, 10, "the next cycle")
            self.assertGreaterEqual(self.ask("A", CAPACITY + 5, (1, 2)), CAPACITY - TOLERANCE)

    def test_a_store_that_stops_and_comes_back(self):
        require_redis()
        with RedisServer() as redis:
            self.start(f"redis://127.0.0.1:{redis.port}", "--cycle", "1h")
            until(lambda: self.metric("headgate_instances", (0,)) == REPLICAS, 20, "the instances are counted")
            self.assertEqual(self.ask("A", 3, (0, 1, 2)), 3)
            redis.kill()

            def is_alone():
                self.ask("A", 1, (0,))
                return self.metric("headgate_fleet_pool_alone", (0,)) == 1

            until(is_alone, 20, "the replica has a pool of its own")
            before = self.metric('headgate_share_requests_total{client="A",outcome="allowed"}', (0,))
            self.ask("A", 30, (0,))
            admitted = self.metric('headgate_share_requests_total{client="A",outcome="allowed"}', (0,))
            self.assertLessEqual(admitted, CAPACITY // REPLICAS + 1, f"{before} before")
            redis.start()
            until(lambda: self.metric("headgate_fleet_pool_alone", (0,)) == 0, 20, "the replica has rejoined")
            # The store has lost the pool. The new pool is charged for the requests that were admitted alone.
            alone = self.metric("headgate_fleet_pool_alone_requests_total", (0,))
            self.assertGreater(alone, 0)
            self.assertLess(self.ask("A", 50, (1, 2)), CAPACITY)
            log = self.sidecars[0].errors()
            self.assertIn("fleet_pool.left", log)
            self.assertIn("fleet_pool.rejoined", log)

    def test_replicas_that_start_without_the_store_share_by_store_instances(self):
        self.start(f"redis://127.0.0.1:{free_port()}", "--cycle", "1h", "--store-instances", "4", replicas=2)
        for place in range(2):
            self.assertEqual(self.ask_alone(place), CAPACITY // 4)

    def test_a_replica_that_cannot_know_the_others_says_so(self):
        self.start(f"redis://127.0.0.1:{free_port()}", "--cycle", "1h", replicas=1)
        self.assertEqual(self.ask_alone(0), CAPACITY)
        self.assertIn("set --store-instances", self.sidecars[0].errors())

    def test_a_handover_without_the_store_keeps_the_number_of_replicas(self):
        require_redis()
        with RedisServer() as redis, tempfile.TemporaryDirectory() as folder:
            words = ("--cycle", "1h", "--handover", f"{folder}/handover")
            self.start(f"redis://127.0.0.1:{redis.port}", "--cycle", "1h", replicas=1)
            self.start(f"redis://127.0.0.1:{redis.port}", *words, replicas=1)
            until(lambda: self.metric("headgate_instances") == 2, 20, "the instances are counted")
            redis.kill()
            # The second process never hears of the store, and hands the number on.
            for _ in range(2):
                self.start(f"redis://127.0.0.1:{redis.port}", *words, replicas=1)
                sidecar = self.sidecars[0]
                until(lambda: "sidecar.started" in sidecar.errors(), 20, "it takes over, without its store")
                self.assertEqual(self.ask_alone(0), CAPACITY // 2)
                self.assertNotIn("set --store-instances", self.sidecars[0].errors())

    def ask_alone(self, place):
        """How many requests pass in the first cycle of a replica that has not reached the store."""

        def is_alone():
            passed.append(self.ask("A", 1, (place,)))
            return self.metric("headgate_fleet_pool_alone", (place,)) == 1

        passed = []
        until(is_alone, 20, "the replica has a pool of its own")
        return sum(passed) + self.ask("A", CAPACITY + 5, (place,))

    def test_what_cannot_be_shared_is_refused(self):
        def refusal(*words):
            result = run(BINARY, "sidecar", "--upstream", "http://127.0.0.1:1", *words)
            self.assertEqual(result.returncode, 2, result.stderr)
            return result.stderr

        self.assertIn("--scope fleet without --store", refusal("--capacity", "40", "--scope", "fleet"))
        store = ("--store", "redis://127.0.0.1:1")
        self.assertIn("--scope fleet with --capacity auto", refusal("--capacity", "auto", "--scope", "fleet", *store))
        self.assertIn("--pool without --scope fleet", refusal("--capacity", "40", "--pool", "x"))
        self.assertIn("--clients is at most 1024", refusal("--capacity", "40", "--scope", "fleet", "--clients", "2000", *store))


if __name__ == "__main__":
    unittest.main()
