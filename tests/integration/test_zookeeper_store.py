"""Strict buckets in ZooKeeper, shared by real instances."""

import http.client
import os
import signal
import tempfile
import threading
import time
import unittest

from clocks import ShiftedClock
from harness import BINARY, Headgate, run, until, wait
from zookeeper import ZooKeeperEnsemble, ZooKeeperServer

RULES = """domain: edge
descriptors:
  - key: api_key
    rate_limit: {requests_per_unit: 10, period: 20s, algorithm: fixed_window, align: first_hit}
  - key: day
    rate_limit: {requests_per_unit: 500, period: 8760h, algorithm: token_bucket}
  - key: locked
    rate_limit: {requests_per_unit: 10, period: 8760h, strict: lock}
  - key: busy
    rate_limit: {requests_per_unit: 1000000, period: 8760h, strict: lock}
  - key: frozen
    rate_limit: {requests_per_unit: 150, period: 8760h, strict: lock}
  - key: paced
    rate_limit: {requests_per_unit: 10, period: 1s, algorithm: token_bucket, burst: 20}
  - key: hour
    rate_limit: {requests_per_unit: 1, period: 1h, algorithm: fixed_window, align: first_hit}
  - key: local
    rate_limit: {requests_per_unit: 10, period: 8760h, on_store_failure: local}
"""


PACED_RATE, PACED_BURST = 10, 20
AHEAD_SECONDS = 5


class StrictTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(folder, "edge.yaml")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)

    def serve(self, url, *args, timeout="2s", **options):
        """A busy machine must not look like a store that is away, so the timeout is long."""
        words = ["--rules", self.rules, "--store", url, "--threads", "2", "--store-timeout", timeout, *args]
        return self.enterContext(Headgate(*words, **options))

    def fleet(self, url, *args, **options):
        instances = [self.serve(url, *args, **options) for _ in range(3)]
        for instance in instances:
            until(lambda: instance.metric("headgate_instances") == 3, 20, "all instances are counted")
        return instances


def statuses(instances, count, **entries):
    return [instances[i % len(instances)].check("edge", **entries)[0] for i in range(count)]


def at_once(instances, count, **entries):
    given = []
    threads = [
        threading.Thread(target=lambda i=i: given.append(instances[i % len(instances)].check("edge", **entries)[0])) for i in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


class ZooKeeperStore(StrictTest):
    def setUp(self):
        super().setUp()
        self.zookeeper = self.enterContext(ZooKeeperServer())

    def test_ten_of_twenty(self):
        instances = self.fleet(self.zookeeper.url())
        for key in ("one", "two", "x" * 1_000, "☃/.."):
            self.assertEqual(statuses(instances, 20, api_key=key), [200] * 10 + [429] * 10, key)
        exact = self.fleet(self.zookeeper.url("/other"), "--sharing", "exact")
        self.assertEqual(statuses(exact, 20, api_key="one"), [200] * 10 + [429] * 10)

    def test_ten_of_twenty_at_once(self):
        instances = self.fleet(self.zookeeper.url(), "--sharing", "exact")
        self.assertEqual(sorted(at_once(instances, 20, api_key="k")), [200] * 10 + [429] * 10)

    def test_ten_of_twenty_under_locks(self):
        instances = self.fleet(self.zookeeper.url(), "--on-store-failure", "local")
        self.assertEqual(sorted(at_once(instances, 20, locked="k")), [200] * 10 + [429] * 10)
        self.assertEqual(sum(i.metric("headgate_store_retries_total") for i in instances), 0)
        self.assertGreaterEqual(sum(i.metric('headgate_store_locks_total{event="taken"}') for i in instances), 3)
        self.zookeeper.kill()
        # Not decided alone, whatever the setting says.
        until(lambda: statuses(instances, 3, locked="k") == [503] * 3, 10, "requests are refused")

    def test_a_lock_that_is_not_free_in_time(self):
        instance = self.serve(self.zookeeper.url(), "--store-lock-timeout", "500ms")
        until(lambda: statuses([instance], 1, locked="k") == [200], 10, "the store is there")
        client = self.zookeeper.client()
        self.addCleanup(client.stop)
        queue = self.queue(client)
        held = client.create(f"{queue}/lock-{'0' * 15}1-", ephemeral=True, sequence=True)
        before = instance.metric('headgate_store_locks_total{event="timed_out"}')
        self.assertEqual(statuses([instance], 2, locked="k"), [503, 503])
        self.assertEqual(instance.metric('headgate_store_locks_total{event="timed_out"}') - before, 2)
        until(lambda: client.get_children(queue) == [os.path.basename(held)], 5, "no node is left behind")
        client.delete(held)
        until(lambda: statuses([instance], 1, locked="k") == [200], 10, "the lock is free")

    def test_the_holder_of_a_lock_is_killed(self):
        instances = self.fleet(self.zookeeper.url(), "--store-lock-timeout", "20s", "--request-timeout", "30s")
        client = self.zookeeper.client()
        self.addCleanup(client.stop)
        self.assertEqual(statuses(instances, 3, busy="k"), [200] * 3)
        queue = self.queue(client)

        def ask():
            try:
                while instances[0].check("edge", busy="k")[0] == 200:
                    pass
            except (OSError, http.client.HTTPException):
                pass  # it was killed

        thread = threading.Thread(target=ask)
        thread.start()
        self.stop_holder(instances[0], client, queue)
        instances[0].process.kill()
        thread.join()
        self.assertEqual(len(client.get_children(queue)), 1)
        # They wait for the end of its session.
        self.assertEqual(statuses(instances[1:], 4, busy="k"), [200] * 4)
        until(lambda: client.get_children(queue) == [], 5, "no node is left behind")

    def test_a_frozen_holder_spoils_nothing(self):
        instances = self.fleet(self.zookeeper.url(), "--store-lock-timeout", "20s", "--request-timeout", "30s")
        client = self.zookeeper.client()
        self.addCleanup(client.stop)
        given = statuses(instances, 3, frozen="k")
        queue = self.queue(client)

        def ask():
            # The request that was frozen may be refused with 503, and counts nothing then.
            while (status := instances[0].check("edge", frozen="k")[0]) != 429:
                if status == 200:
                    given.append(status)

        thread = threading.Thread(target=ask)
        thread.start()
        self.stop_holder(instances[0], client, queue)
        # Others have had the lock by the time that it runs again.
        given += statuses(instances[1:], 4, frozen="k")
        instances[0].process.send_signal(signal.SIGCONT)
        thread.join()
        self.assertEqual(given, [200] * 150)
        self.assertEqual(statuses(instances, 3, frozen="k"), [429] * 3)
        until(lambda: client.get_children(queue) == [], 5, "no node is left behind")

    def queue(self, client):
        """The path of the only queue for a lock of a key."""
        [name] = [name for name in client.get_children("/rate-limiter/locks") if name != "gc"]
        return f"/rate-limiter/locks/{name}"

    def stop_holder(self, instance, client, queue):
        """Stops the process while it has a node in the queue. The node then stays until its session ends."""

        def stopped_with_a_node():
            instance.process.send_signal(signal.SIGSTOP)
            # Its removal could still be on the way.
            if all(client.get_children(queue) for _ in range(20)):
                return True
            instance.process.send_signal(signal.SIGCONT)
            return False

        until(stopped_with_a_node, 10, "the holder is stopped")

    def test_instances_compare_their_clocks_with_the_leaders(self):
        instance = self.serve(self.zookeeper.url())
        shown = lambda: "headgate_store_clock_offset_seconds " in instance.request("GET", "/metrics")[2]
        until(shown, 10, "the offset has been measured")
        # The same machine, so the same clock; a busy machine makes it uncertain.
        self.assertLess(abs(instance.metric("headgate_store_clock_offset_seconds")), 1)

    def test_a_clock_that_is_seconds_ahead_lets_nothing_more_through(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        clock = ShiftedClock(self, folder)
        clock.set(time_of_day=AHEAD_SECONDS)
        ahead = self.serve(self.zookeeper.url(), env=clock.env)
        right = self.serve(self.zookeeper.url())
        until(lambda: ahead.metric("headgate_store_clock_offset_seconds") > AHEAD_SECONDS / 2, 10, "the offset has been measured")
        self.assertIn("decisions are corrected by this", ahead.errors())
        begin = time.monotonic()
        passed = statuses([ahead, right], 400, paced="k").count(200)
        seconds = time.monotonic() - begin
        # One bucket, whose writers' times differ by less than a fifth of a second.
        self.assertLessEqual(passed, PACED_BURST + PACED_RATE * (seconds + 0.2))
        # A window of an hour that the other instance has opened ends at the same time for both.
        self.assertEqual(statuses([ahead, right], 2, hour="k"), [200, 429])
        retry = [instance.check("edge", hour="k")[2]["decisions"][0]["retry_after_ms"] for instance in (ahead, right)]
        self.assertLess(abs(retry[0] - retry[1]), 1000)

    def test_a_log_that_the_store_cannot_hold_is_warned_about(self):
        rule = "- {key: %s, rate_limit: {requests_per_unit: %d, unit: hour, algorithm: sliding_window_log}}\n"
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write("domain: edge\ndescriptors:\n" + rule % ("fits", 87_033) + rule % ("large", 87_034))
        instance = self.serve(self.zookeeper.url())
        (warning,) = (line for line in instance.errors().splitlines() if "rules.log_too_large" in line)
        self.assertIn("rule=large", warning)
        self.assertIn("holds 87033 hits", warning)

    def test_a_bucket_can_be_shown(self):
        instance = self.serve(self.zookeeper.url(), "--sharing", "exact")
        until(lambda: instance.check("edge", day="k")[0] == 200, 20, "the instance is connected")
        self.assertEqual(statuses([instance], 4, api_key="k"), [200] * 4)
        shown = run(BINARY, "store", "show", self.zookeeper.url(), "hg:{r|edge|api_key=k#0}")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"^limit       10 per 20s, fixed_window.*\nremaining   6\nfull again  in 1[0-9]\.?\d*s\non lease    0\n$")
        none = run(BINARY, "store", "show", self.zookeeper.url(), "hg:{r|edge|api_key=other#0}")
        self.assertEqual((none.returncode, none.stdout), (0, "no bucket: the key has its full limit\n"))

    def test_a_damaged_state_gives_nobody_a_fresh_bucket(self):
        instance = self.serve(self.zookeeper.url(), "--sharing", "exact")
        until(lambda: instance.check("edge", day="k")[0] == 200, 20, "the instance is connected")
        self.assertEqual(statuses([instance], 11, api_key="k"), [200] * 10 + [429])
        client = self.zookeeper.client()
        shards = (f"/rate-limiter/state/{shard}" for shard in client.get_children("/rate-limiter/state"))
        (path,) = (f"{shard}/{name}" for shard in shards for name in client.get_children(shard) if "api_key" in name)
        data = bytearray(client.get(path)[0])
        data[20] ^= 1
        client.set(path, bytes(data))
        damaged = run(BINARY, "store", "show", self.zookeeper.url(), "hg:{r|edge|api_key=k#0}")
        self.assertEqual(damaged.returncode, 2, damaged.stdout)
        self.assertIn("damaged", damaged.stderr)
        self.assertEqual(statuses([instance], 2, api_key="k"), [503] * 2)
        self.assertIn("the value of a bucket is damaged", instance.errors())
        self.assertEqual(instance.metric('headgate_store_bucket_events_total{event="damaged"}'), 2)
        body = '{"domain": "edge", "descriptors": [{"entries": [{"key": "api_key", "value": "k"}]}]}'
        self.assertEqual(instance.request("POST", "/v1/reset", body)[0], 200)
        self.assertEqual(statuses([instance], 11, api_key="k"), [200] * 10 + [429])

    def test_without_zookeeper(self):
        instances = self.fleet(self.zookeeper.url(), timeout="250ms")
        self.assertEqual(statuses(instances, 4, day="k"), [200] * 4)
        self.zookeeper.kill()
        for instance in instances:
            until(lambda: instance.check("edge", day="k")[0] == 503, 5, "requests are refused")
            # A rule that says so is decided alone.
            self.assertEqual(instance.check("edge", local="k")[0], 200)
            opens = lambda: instance.check("edge", day="k")[0] == 503 and instance.metric("headgate_store_breakers_open") > 0
            until(opens, 20, "a breaker opens")
            until(lambda: "store.unreachable" in instance.errors(), 5, "the log says so")
            self.assertGreater(instance.metric('headgate_shared_decisions_total{mode="closed"}'), 0)
            self.assertGreater(instance.metric('headgate_store_calls_total{outcome="unavailable"}'), 0)
        self.zookeeper.start()
        for instance in instances:
            until(lambda: instance.check("edge", cost=0, day="k")[0] == 200, 20, "it is used again")
            until(lambda: instance.metric("headgate_store_breakers_open") == 0, 20, "its breakers are closed")
            self.assertIn("store.recovered", instance.errors())
        answer = instances[0].check("edge", day="k")[2]["decisions"][0]
        # Another instance may hold a small lease.
        self.assertLessEqual(answer["remaining"], 495)
        self.assertGreaterEqual(answer["remaining"], 495 - 500 // 32)

    def test_a_start_without_zookeeper(self):
        self.zookeeper.kill()
        instance = self.serve(self.zookeeper.url(), timeout="100ms")
        self.assertEqual(instance.check("edge", api_key="k")[0], 503)
        self.zookeeper.start()
        until(lambda: instance.check("edge", api_key="k")[0] == 200, 20, "it is used")

    def test_an_instance_is_killed(self):
        instances = self.fleet(self.zookeeper.url(), "--sharing", "exact")
        admitted, denied = [], []

        def load(instance):
            while not denied:
                try:
                    status = instance.check("edge", day="k")[0]
                except OSError:
                    return
                if status != 503:
                    (admitted if status == 200 else denied).append(status)

        threads = [threading.Thread(target=load, args=(instance,)) for instance in instances for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: len(admitted) > 100, 20, "there is load")
        instances[0].process.kill()
        until(lambda: len(admitted) > 300, 20, "the others continue")
        for thread in threads:
            thread.join()
        # The last answers of the killed instance, to two clients, may have been lost.
        self.assertLessEqual(len(admitted), 500)
        self.assertGreaterEqual(len(admitted), 500 - 2)
        until(lambda: instances[1].metric("headgate_instances") == 2, 20, "its node goes with its session")

    def test_leaving(self):
        instances = self.fleet(self.zookeeper.url())
        operator = self.zookeeper.client()
        self.addCleanup(operator.close)
        self.addCleanup(operator.stop)
        self.assertEqual(len(operator.get_children("/rate-limiter/instances")), 3)
        wait(5)  # The number does not fall shortly after a start.
        self.assertEqual(instances[0].stop(), 0)
        until(lambda: len(operator.get_children("/rate-limiter/instances")) == 2, 2, "its node is gone at once")
        until(lambda: instances[1].metric("headgate_instances") == 2, 2, "the others know")

    def test_settings(self):
        shown = run(BINARY, "serve", "--print-config", "--store", self.zookeeper.url(login="gate:hunter2@"))
        self.assertIn("on_store_failure: deny", shown.stdout)
        self.assertIn("store_timeout: 250ms", shown.stdout)
        self.assertNotIn("hunter2", shown.stdout)
        done = run(BINARY, "serve", "--store", "zk://a", "--store-server-name", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ZooKeeper's client has no TLS", done.stderr)
        done = run(BINARY, "serve", "--store", "zk://gate:sec@ret:1x/x")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("sec", done.stderr)


class ZooKeeperEnsembleStore(StrictTest):
    def test_the_leader_dies(self):
        ensemble = self.enterContext(ZooKeeperEnsemble())
        instances = self.fleet(ensemble.url(), "--sharing", "exact")
        self.assertEqual(statuses(instances, 5, api_key="k"), [200] * 5)
        self.assertEqual(statuses(instances, 30, day="k"), [200] * 30)
        ensemble.leader().kill()
        for instance in instances:
            until(lambda: instance.check("edge", cost=0, day="k")[0] == 200, 20, "the ensemble serves again")
        self.assertEqual(instances[0].check("edge", cost=0, day="k")[2]["decisions"][0]["remaining"], 470)


if __name__ == "__main__":
    unittest.main()
