"""Strict buckets in ZooKeeper, shared by real instances."""

import http.client
import os
import signal
import tempfile
import threading
import unittest

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
  - key: local
    rate_limit: {requests_per_unit: 10, period: 8760h, on_store_failure: local}
"""


class StrictTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(folder, "edge.yaml")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)

    def serve(self, url, *args, timeout="2s"):
        """A busy machine must not look like a store that is away, so the timeout is long."""
        words = ["--rules", self.rules, "--store", url, "--threads", "2", "--store-timeout", timeout, *args]
        return self.enterContext(Headgate(*words))

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
        # Others have had the lock by the time that it goes on.
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
        self.assertEqual(answer["remaining"], 495)

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
        until(lambda: len(admitted) > 300, 20, "the others go on")
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
