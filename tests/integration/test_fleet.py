"""Several instances that share one Redis enforce one limit together, and follow the failure policy
while it is unreachable."""

import json
import select
import signal
import socket
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from fleet import FleetTest
from harness import BINARY, Headgate, run, until, wait
from load import Load, throttle

RULES = """domain: edge
descriptors:
  - key: api_key
    rate_limit: {requests_per_unit: 30, period: 1h, algorithm: token_bucket}
  - key: window
    rate_limits:
      - {requests_per_unit: 20, period: 1h, algorithm: fixed_window}
      - {requests_per_unit: 12, period: 1d, algorithm: sliding_window_log}
  - key: strict
    rate_limit: {requests_per_unit: 30, period: 1h, algorithm: token_bucket, on_store_failure: deny}
  - key: lenient
    rate_limit: {requests_per_unit: 1, period: 1h, algorithm: token_bucket, on_store_failure: allow}
  - key: third
    rate_limit: {requests_per_unit: 30, period: 1h, algorithm: token_bucket, fallback_share: 0.1}
"""


class Fleet(FleetTest):
    RULES = RULES

    def command(self, *words):
        with socket.create_connection(("127.0.0.1", self.redis.port), timeout=10) as connection:
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
            return connection.recv(65536).decode()

    @staticmethod
    def admitted(instances, requests, **entries):
        """The number of requests that pass, out of this many spread over the instances, several at
        a time."""

        def ask(i):
            return instances[i % len(instances)].check("edge", **entries)[0] == 200

        with ThreadPoolExecutor(8) as pool:
            return sum(pool.map(ask, range(requests)))

    @staticmethod
    def modes(instance, requests):
        """The answers to this many peeks, each over a connection of its own."""

        def look(_):
            return instance.check("edge", cost=0, path="/v1/peek", api_key="k9")[1]["x-ratelimit-mode"]

        with ThreadPoolExecutor(8) as pool:
            return set(pool.map(look, range(requests)))

    metric = staticmethod(Headgate.metric)

    def test_batches_of_checks_share_one_limit(self):
        instances = [self.instance() for _ in range(2)]

        def ask(instance):
            check = {"domain": "edge", "descriptors": [{"entries": [{"key": "api_key", "value": "batch"}]}]}
            window = {"domain": "edge", "descriptors": [{"entries": [{"key": "window", "value": "batch"}]}]}
            body = json.dumps({"checks": [check, window] * 10})
            results = []
            for _ in range(5):
                results += json.loads(instance.request("POST", "/v1/checks", body)[2])["results"]
            return [sum(result["status"] == 200 for result in results[first::2]) for first in (0, 1)]

        with ThreadPoolExecutor(2) as pool:
            passed = list(pool.map(ask, instances))
        self.assertEqual([sum(kind) for kind in zip(*passed)], [30, 12])

    def test_one_limit_for_all_instances(self):
        for sharing in ("exact", "leased"):
            with self.subTest(sharing):
                instances = [self.instance("--sharing", sharing) for _ in range(3)]
                self.assertEqual(self.admitted(instances, 90, api_key=sharing), 30)
                status, fields, answer = instances[0].check("edge", api_key=sharing)
                self.assertEqual(status, 429)
                self.assertIn(fields["x-ratelimit-mode"], ("exact", sharing))
                self.assertEqual(answer["decisions"][0]["mode"], fields["x-ratelimit-mode"])
                self.assertEqual(self.admitted(instances, 20, api_key="k2" + sharing), 20)

    def test_a_hot_key_is_decided_from_leases_within_the_bound_of_one_bucket(self):
        instances = [self.instance() for _ in range(3)]
        seconds, rate, burst = 4, 2000, 200
        command = b"CL.THROTTLE hot %d %d 1\r\n" % (burst - 1, rate)
        stop = threading.Event()

        def load(instance):
            passed = asked = 0
            with instance.connect() as connection:
                reader = connection.makefile("rb")
                while not stop.is_set():
                    connection.sendall(command * 40)
                    for _ in range(40):
                        lines = [reader.readline() for _ in range(6)]
                        passed += lines[1] == b":0\r\n"
                    asked += 40
            return passed, asked

        began = time.monotonic()
        with ThreadPoolExecutor(3) as pool:
            loads = [pool.submit(load, instance) for instance in instances]
            select.select([], [], [], seconds)
            stop.set()
            results = [done.result() for done in loads]
        took = time.monotonic() - began
        passed = sum(result[0] for result in results)
        asked = sum(result[1] for result in results)
        self.assertLessEqual(passed, burst + rate * took)
        self.assertGreaterEqual(passed, 0.9 * rate * seconds)
        self.assertGreater(asked, 3 * passed, "the load was too low")
        calls = sum(self.metric(i, 'headgate_store_calls_total{outcome="answered"}') for i in instances)
        self.assertLess(calls, asked / 20)
        # The unspent rest of leases goes back when an instance ends, so that the next instance can
        # use it.
        for instance in instances:
            self.assertEqual(instance.stop(), 0)

    def test_an_overloaded_key_costs_the_same_number_of_calls_on_many_loops(self):
        instance = self.instance(threads=4)
        rate, burst, seconds = 100, 100, 4
        load = self.enterContext(Load([instance], {"abused": throttle("abused", burst, rate)}, connections=8))
        wait(1)  # the burst, and one request for each loop to learn this
        asked = self.metric(instance, "headgate_lease_asks_total")
        began = load.now()
        wait(seconds)
        messages = (self.metric(instance, "headgate_lease_asks_total") - asked) / (load.now() - began)
        load.stop()
        self.assertGreater(load.asked, 20 * rate * seconds, "the key was not overloaded")
        # At least 20 ms apart.
        self.assertLessEqual(messages, 51)
        self.assertLessEqual(load.excess("abused", burst, rate), 0)
        self.assertGreaterEqual(load.admitted("abused"), 0.9 * rate * load.took)

    def test_latencies_of_the_store_and_of_waiting_requests_are_measured(self):
        instance = self.instance("--sharing", "exact")
        for _ in range(5):
            self.assertEqual(instance.check("edge", api_key="k")[1]["x-ratelimit-mode"], "exact")
        with instance.connect() as connection:
            connection.sendall(b"CL.THROTTLE user123 100 1 3600\r\n" * 20)
            reader = connection.makefile("rb")
            self.assertEqual([reader.readline() for _ in range(20 * 6)][:2], [b"*5\r\n", b":0\r\n"])

        def of(name, labels=""):
            return self.metric(instance, f"{name}_sum{labels}"), self.metric(instance, f"{name}_count{labels}")

        seconds, calls = of("headgate_store_call_seconds")
        self.assertEqual(calls, self.metric(instance, 'headgate_store_calls_total{outcome="answered"}'))
        self.assertGreaterEqual(calls, 25)
        self.assertTrue(0 < seconds < 10, seconds)
        carried, writes = of("headgate_store_batch_calls")
        self.assertGreaterEqual(carried, 25)
        self.assertLess(writes, carried, "calls that are ready together share a write")
        # A request that waits reports the whole time, and separately the shorter time of deciding.
        for front, waits in (("http", 5), ("resp", 1)):
            waited, count = of("headgate_wait_seconds", f'{{front="{front}"}}')
            self.assertGreaterEqual(count, waits)
            self.assertTrue(0 < waited < 10, waited)
        self.assertLess(of("headgate_batch_seconds", '{front="resp"}')[0], of("headgate_wait_seconds", '{front="resp"}')[0])

    def test_a_request_takes_from_all_limits_of_a_rule_or_from_none(self):
        instances = [self.instance() for _ in range(2)]
        self.assertEqual(self.admitted(instances, 40, window="w"), 12)
        # The window gets back the requests that the log denied.
        look = instances[0].check("edge", cost=0, path="/v1/peek", window="w")[2]
        self.assertEqual(look["decisions"][0]["remaining"], 0)
        self.assertEqual(instances[1].check("edge", path="/v1/refund", cost=2, window="w")[0], 200)
        self.assertEqual(self.admitted(instances, 8, window="w"), 2)

    def test_cl_throttle_is_shared_too(self):
        instances = [self.instance() for _ in range(2)]
        replies = []
        for i in range(4):
            with instances[i % 2].connect() as connection:
                connection.sendall(b"CL.THROTTLE user123 2 1 3600\r\n")
                replies.append(connection.recv(100).decode().split("\r\n")[1])
        self.assertEqual(replies, [":0", ":0", ":0", ":1"])

    def test_every_key_in_the_store_expires(self):
        instance = self.instance()
        for entries in ({"api_key": "a"}, {"window": "b"}, {"third": "c"}):
            self.assertEqual(instance.check("edge", **entries)[0], 200)
        keys = [word for word in self.command("KEYS", "hg:{*").split("\r\n") if word.startswith("hg:")]
        self.assertEqual(
            sorted(keys),
            ["hg:{r|edge|api_key=a#0}", "hg:{r|edge|third=c#0}", "hg:{r|edge|window=b#0}", "hg:{r|edge|window=b#1}"],
        )
        for key in keys:
            self.assertGreater(int(self.command("PTTL", key)[1:]), 0, key)

    def test_hashed_keys_hide_the_values_that_clients_send(self):
        secret = self.write("secret", "of this fleet\n")
        hashed = ("--hash-keys", "yes", "--hash-keys-secret-file", secret, "--sharing", "exact")
        instances = [self.instance(*hashed) for _ in range(2)]
        self.assertEqual(self.admitted(instances, 40, api_key="someone"), 30)
        keys = self.command("KEYS", "hg:{*")
        self.assertNotIn("someone", keys)
        self.assertRegex(keys, r"hg:\{h\|[0-9a-f]{32}\}")

    def test_a_change_of_limit_keeps_what_the_fleet_consumed(self):
        instances = [self.instance("--sharing", "exact") for _ in range(2)]
        self.assertEqual(self.admitted(instances, 25, api_key="k1"), 25)

        def limit_of(instance):
            return instance.check("edge", cost=0, path="/v1/peek", api_key="k1")[2]["decisions"][0]["limit"]

        self.write("edge.yaml", RULES.replace("requests_per_unit: 30, period: 1h, algorithm: token_bucket}\n  - key: window",
                                              "requests_per_unit: 10, period: 1h, algorithm: token_bucket}\n  - key: window"))
        for instance in instances:
            until(lambda: limit_of(instance) == 10, 2, "the lower limit is in force")
        self.assertEqual(self.admitted(instances, 10, api_key="k1"), 5)
        self.write("edge.yaml", RULES)
        for instance in instances:
            until(lambda: limit_of(instance) == 30, 2, "the old limit is in force again")
        self.assertEqual(self.admitted(instances, 10, api_key="k1"), 0)

    def test_without_the_store_each_rule_follows_its_policy_until_the_store_is_back(self):
        # Exact, because leased buckets would first have to learn after a restart, and begin empty.
        instances = [self.instance("--sharing", "exact") for _ in range(2)]
        until(lambda: self.metric(instances[0], "headgate_instances") == 2, 10, "the instances know of each other")
        until(lambda: self.metric(instances[1], "headgate_instances") == 2, 10, "the instances know of each other")
        self.assertEqual(self.admitted(instances, 4, api_key="k1"), 4)
        self.redis.kill()

        status, fields, answer = instances[0].check("edge", api_key="k2")
        self.assertEqual((status, fields["x-ratelimit-mode"]), (200, "local"))
        self.assertEqual(answer["decisions"][0]["mode"], "local")
        # Each of the two has half of it.
        self.assertEqual(self.admitted(instances[:1], 40, api_key="k3"), 15)
        self.assertEqual(self.admitted(instances[:1], 10, third="k"), 3)
        status, fields, _ = instances[0].request("POST", "/v1/check", '{"domain":"edge","descriptors":[{"entries":[{"key":"strict","value":"v"}]}]}')
        self.assertEqual((status, fields["x-ratelimit-mode"], fields["retry-after"]), (503, "closed", "1"))
        for _ in range(3):
            status, fields, _ = instances[0].check("edge", lenient="v")
            self.assertEqual((status, fields["x-ratelimit-mode"]), (200, "open"))
        self.assertEqual(instances[0].request("POST", "/v1/reset", '{"domain":"edge","descriptors":[{"entries":[{"key":"api_key","value":"k2"}]}]}')[0], 503)
        self.assertGreater(self.metric(instances[0], 'headgate_shared_decisions_total{mode="local"}'), 0)
        self.assertIn("store.disconnected", instances[0].errors())

        self.redis.start()
        for instance in instances:
            # Covers every loop; each has connections of its own.
            until(lambda: self.modes(instance, 16) == {"exact"}, 20, "decisions are exact again")
        self.assertEqual(self.admitted(instances, 60, api_key="k9"), 30)

    def test_an_instance_that_stops_leaves_the_list_of_instances(self):
        instances = [self.instance() for _ in range(2)]
        until(lambda: self.metric(instances[0], "headgate_instances") == 2, 10, "the instances know of each other")
        self.assertEqual(instances[1].stop(signal.SIGTERM), 0)
        until(lambda: self.metric(instances[0], "headgate_instances") == 1, 5, "the remaining instance counts itself only")

    def test_an_invalid_store_is_refused_with_a_hint(self):
        for url, word in (("http://127.0.0.1", "http"), ("redis://", "host"), ("redis://127.0.0.1:x", "port")):
            refused = run(BINARY, "serve", "--listen", "127.0.0.1:0", "--store", url)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("hint:", refused.stderr)
            self.assertIn(word, refused.stderr)

    def test_the_password_is_never_shown(self):
        server = self.enterContext(
            Headgate("--rules", self.rules, "--store", f"redis://:sesame42@127.0.0.1:{self.redis.port}", "--threads", "1")
        )
        until(lambda: "store." in server.errors(), 10, "the log reports the failed connection")
        self.assertNotIn("sesame42", server.errors())


if __name__ == "__main__":
    unittest.main()
