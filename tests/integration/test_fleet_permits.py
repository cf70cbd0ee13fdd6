"""The cost of a fault of the store for limits of concurrency: how many permits are given out beyond the limit, and
how long a client waits for permits that nobody holds any more. Nobody gives a permit back in these tests."""

import json
import tempfile
import time
import unittest

from clocks import ShiftedClock
from faults import record
from harness import PATIENT, Headgate, RedisCluster, RedisServer, require_redis, until, wait

LIMIT = 10
TTL_SECONDS = 6


class Permits(unittest.TestCase):
    def setUp(self):
        require_redis()

    def instances(self, store):
        words = ("--rule", f"pool: {LIMIT} concurrency ttl {TTL_SECONDS}s", "--store", store, *PATIENT, "--on-store-failure", "deny")
        self.servers = [self.enterContext(Headgate(*words)) for _ in range(2)]

    def acquire(self, count, value="db"):
        """How many of these permits are given out."""
        body = json.dumps({"descriptors": [{"entries": [{"key": "pool", "value": value}]}]})
        return sum(self.servers[i % 2].request("POST", "/v1/acquire", body)[0] == 200 for i in range(count))

    def served(self, value="db"):
        """The store answers both instances."""
        return all(server.check(path="/v1/peek", pool=value)[0] in (200, 429) for server in self.servers)

    def test_the_store_restarts_empty(self):
        redis = self.enterContext(RedisServer())
        self.instances(f"redis://127.0.0.1:{redis.port}")
        self.assertEqual(self.acquire(LIMIT + 1), LIMIT)
        redis.kill()
        redis.start()
        until(self.served, 10, "the store is used again")
        record(self, "permits_restart", self.acquire(2 * LIMIT) / LIMIT, 1, 0, 0)

    def test_a_replica_that_lacks_the_last_permits_takes_over(self):
        cluster = self.enterContext(RedisCluster())
        self.instances(f"redis+cluster://127.0.0.1:{cluster.port}")
        # The permits of a key are in the first shard that gets one.
        self.assertEqual(self.acquire(1), 1)
        shard = next(i for i in range(cluster.SHARDS) if self.keys(cluster.primary_of(i)))
        primary, replica = cluster.primary_of(shard), cluster.replicas_of(shard)[0]
        until(lambda: self.keys(replica), 5, "the replica has the first one")
        replica.pause()
        self.addCleanup(replica.resume)
        primary.command("CLIENT", "KILL", "TYPE", "replica")
        began = time.monotonic()
        self.assertEqual(self.acquire(LIMIT), LIMIT - 1)
        primary.kill()
        replica.resume()
        until(self.served, 20, "the replica has taken over")
        again = self.acquire(2 * LIMIT)
        self.assertLess(time.monotonic() - began, TTL_SECONDS, "the permits that were lost are still held")
        self.assertEqual(again, LIMIT - 1, "all but the first were lost")
        record(self, "permits_failover", again / LIMIT, 1, 0, 0)

    def keys(self, server):
        return "pool=db" in server.command("KEYS", "*pool=db*")

    def shifted(self, seconds):
        clock = ShiftedClock(self, self.enterContext(tempfile.TemporaryDirectory()))
        redis = self.enterContext(RedisServer(env=clock.env))
        self.instances(f"redis://127.0.0.1:{redis.port}")
        self.assertEqual(self.acquire(LIMIT // 2), LIMIT // 2)
        wait(TTL_SECONDS / 2)
        began = time.monotonic()
        self.assertEqual(self.acquire(LIMIT), LIMIT - LIMIT // 2)
        clock.set(time_of_day=seconds)
        return began

    def test_the_clock_of_the_store_is_set_forward(self):
        self.shifted(TTL_SECONDS * 0.75)
        # The first half would have ended within that time.
        record(self, "permits_clock_forward", self.acquire(LIMIT) / LIMIT, 0.5, 0, 0)

    def test_the_clock_of_the_store_is_set_back(self):
        began = self.shifted(-1)
        over = self.acquire(LIMIT) / LIMIT
        until(lambda: self.acquire(1), 20, "the first half has ended")
        late = time.monotonic() - began - TTL_SECONDS / 2
        record(self, "permits_clock_back", over, 0, late, 1)


if __name__ == "__main__":
    unittest.main()
