"""A sidecar whose rules count in a shared store, or come from ZooKeeper, is restarted by `--handover`: the new process
takes over when its store answers and its rules are there."""

import os
import unittest
import unittest.mock

from dynamodb import KEYS, NO_KEYS, Dynalite
from gate import Gate
from harness import BINARY, PATIENT, START_SECONDS, RedisCluster, RedisSentinel, RedisServer, Sidecar, require_redis, run, until
from test_sidecar_restart import KeptConnections, Restarts, ask_as
from zookeeper import ZooKeeperServer

RULE = ("--rule", "client: 100000/s")
DOCUMENT = b"""domain: default
descriptors:
  - key: client
    rate_limit: {requests_per_unit: 100000, unit: second}
"""
DENY = ("--on-store-failure", "deny")
# The longest wait of the new process for its store.
WAIT_SECONDS = 5


class WithAStore(Restarts):
    def begin(self, *args):
        """A new process that may not be ready yet."""
        return self.enterContext(Sidecar(self.nginx.port, args=("--handover", self.path, "--threads", "2", *args)))

    def begins_to_drain(self, sidecar):
        return "sidecar.drain_began" in sidecar.errors()


class NoRequestFails(WithAStore):
    """Clients that never ask twice, through restarts."""

    def restarts_with(self, store, count=3):
        words = ("--store", store, *RULE, *DENY, *PATIENT[:2])
        old = self.start(2, *words)
        until(lambda: ask_as(old, "ann")[0] == 200, 10, "the first process uses its store")
        clients = [KeptConnections(old.port) for _ in range(3)]
        asked = lambda: [client.answered for client in clients]
        for threads in (1, 3, 2)[:count]:
            before = asked()
            until(lambda: all(now > then + 50 for now, then in zip(asked(), before)), 30, f"all are served: {[c.failures for c in clients]}")
            new = self.start(threads, *words)
            self.assertNotIn("handover.store_not_awaited", new.errors())
            until(lambda: self.begins_to_drain(old), 10, "the old process leaves")
            self.assertEqual(old.process.wait(START_SECONDS), 0, old.errors())
            old = new
        for client in clients:
            client.ends.set()
            client.join(60)
            self.assertEqual(client.failures, [])
        for mode in ("local", "closed"):
            self.assertEqual(old.metric(f'headgate_shared_decisions_total{{mode="{mode}"}}'), 0)

    def test_zookeeper(self):
        self.restarts_with(self.enterContext(ZooKeeperServer()).url())

    def test_redis(self):
        require_redis()
        self.restarts_with(f"redis://127.0.0.1:{self.enterContext(RedisServer()).port}")

    def test_a_cluster(self):
        require_redis()
        cluster = self.enterContext(RedisCluster())
        cluster.wait_until_well()
        self.restarts_with(f"redis+cluster://127.0.0.1:{cluster.nodes[0].port},127.0.0.1:{cluster.nodes[1].port}")

    def test_sentinels(self):
        require_redis()
        primary = self.enterContext(RedisServer())
        sentinel = self.enterContext(RedisSentinel(f"sentinel monitor main 127.0.0.1 {primary.port} 1\n"))
        self.restarts_with(f"redis+sentinel://127.0.0.1:{sentinel.port}/main")

    def test_a_ring(self):
        require_redis()
        servers = [self.enterContext(RedisServer()) for _ in range(2)]
        self.restarts_with("redis+ring://" + ",".join(f"127.0.0.1:{server.port}" for server in servers))

    def test_dynamodb(self):
        self.enterContext(unittest.mock.patch.dict(os.environ, {**NO_KEYS, **KEYS}))
        store = self.enterContext(Dynalite()).url()
        done = run(BINARY, "store", "create-table", store)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.restarts_with(store)


class AStoreThatIsSlowToAnswer(WithAStore):
    def setUp(self):
        super().setUp()
        self.zookeeper = self.enterContext(ZooKeeperServer())
        self.gate = self.enterContext(Gate(self.zookeeper.port))
        self.old = self.start(2, "--store", self.zookeeper.url(), *RULE)
        until(lambda: ask_as(self.old, "ann")[0] == 200, 10, "the first process uses its store")
        self.late = ("--store", f"zk://127.0.0.1:{self.gate.port}/rate-limiter", *RULE)

    def test_the_old_process_serves_until_it_answers(self):
        self.gate.hold("to_client")
        new = self.begin(*self.late)
        until(lambda: self.gate.accepted > 0, 10, "the new process connects to its store")
        for _ in range(20):
            self.assertEqual(ask_as(self.old, "ann")[0], 200)
        self.assertNotIn("sidecar.started", new.errors())
        self.assertFalse(self.begins_to_drain(self.old))
        self.gate.heal()
        until(lambda: self.begins_to_drain(self.old), START_SECONDS, "the new process takes over")
        for _ in range(20):
            self.assertEqual(ask_as(new, "ann")[0], 200)
        self.assertNotIn("handover.store_not_awaited", new.errors())

    def test_a_store_that_is_away_does_not_keep_the_old_process(self):
        self.gate.cut()
        new = self.begin(*self.late)
        # It accepts for a moment after it has begun to drain.
        self.assertEqual(self.old.process.wait(WAIT_SECONDS + START_SECONDS), 0, self.old.errors())
        self.assertRegex(new.errors(), r"handover\.store_not_awaited waited=5s reason=")
        self.assertEqual(ask_as(new, "ann")[0], 503)
        self.gate.heal()
        until(lambda: ask_as(new, "ann")[0] == 200, 20, "it uses the store as soon as that answers")


class RulesThatAreAway(WithAStore):
    def setUp(self):
        super().setUp()
        self.zookeeper = self.enterContext(ZooKeeperServer())
        operator = self.zookeeper.client()
        operator.ensure_path("/rate-limiter/rules/edge")
        operator.set("/rate-limiter/rules/edge", DOCUMENT)
        operator.stop()
        operator.close()
        self.words = ("--watch", self.zookeeper.url(), "--watch-session-timeout", "1s")

    def refused(self):
        done = run(BINARY, "sidecar", "--handover", self.path, "--capacity", "1", "--listen", "127.0.0.1:0",
                   "--admin-listen", "none", "--upstream", f"http://127.0.0.1:{self.nginx.port}", *self.words)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("--handover: this process has found no rules; the old one continues to serve", done.stderr)
        self.assertIn("hint: ", done.stderr)
        return done.stderr

    def test_a_process_without_rules_does_not_replace_one_that_has_some(self):
        old = self.start(2, *self.words)
        self.assertEqual(ask_as(old, "ann")[0], 200)
        self.zookeeper.kill()
        self.assertIn("rules.awaited", self.refused())
        self.assertEqual(ask_as(old, "ann")[0], 200)
        self.assertFalse(self.begins_to_drain(old))
        self.zookeeper.start()
        new = self.start(2, *self.words)
        until(lambda: self.begins_to_drain(old), 10, "the old process leaves")
        self.assertEqual(ask_as(new, "ann")[0], 200)

    def test_nor_if_it_finds_no_documents(self):
        old = self.start(2, *self.words)
        self.assertEqual(ask_as(old, "ann")[0], 200)
        self.words = ("--watch", self.zookeeper.url("/elsewhere"))
        self.refused()
        self.assertEqual(ask_as(old, "ann")[0], 200)

    def test_a_copy_is_enough(self):
        self.words += ("--watch-copy", os.path.join(os.path.dirname(self.path), "copy"))
        old = self.start(2, *self.words)
        until(lambda: "rules.copy_written" in old.errors() or os.path.exists(self.words[-1]), 10, "the copy is written")
        self.zookeeper.kill()
        new = self.start(2, *self.words)
        self.assertIn("rules.copy_used", new.errors())
        self.assertEqual(ask_as(new, "ann")[0], 200)


class TheCountOfInstances(WithAStore):
    """The process that leaves counts no longer, although it still serves an open connection."""

    def counted_once(self, store):
        words = ("--store", store, *RULE, *PATIENT[:2], "--drain-timeout", "10m")
        old = self.start(2, *words)
        other = self.enterContext(Sidecar(self.nginx.port, args=("--store", store, *RULE, *PATIENT[:2])))
        count = "headgate_instances"
        until(lambda: old.metric(count) == other.metric(count) == 2, 30, "two are counted")
        with old.connect() as idle:
            new = self.start(2, *words)
            until(lambda: self.begins_to_drain(old), 10, "the old process leaves")
            # The admin address is the new process's.
            until(lambda: new.metric(count) == 2 and other.metric(count) == 2, 20, "the two that stay are counted")
            self.assertIsNone(old.process.poll())
            idle.close()
        self.assertEqual(new.stop(), 0)
        until(lambda: other.metric(count) == 1, 20, "a process that stops is not counted any more")

    def test_redis(self):
        require_redis()
        server = self.enterContext(RedisServer())
        self.counted_once(f"redis://127.0.0.1:{server.port}")
        self.assertEqual(server.command("ZCARD", "hg:instances"), "1")

    def test_zookeeper(self):
        self.counted_once(self.enterContext(ZooKeeperServer()).url())

    def test_dynamodb(self):
        self.enterContext(unittest.mock.patch.dict(os.environ, {**NO_KEYS, **KEYS}))
        store = self.enterContext(Dynalite()).url()
        done = run(BINARY, "store", "create-table", store)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.counted_once(store)


if __name__ == "__main__":
    unittest.main()
