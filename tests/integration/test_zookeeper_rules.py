"""Rules in ZooKeeper, followed by real instances."""

import json
import os
import tempfile
import threading
import unittest
from contextlib import ExitStack

from kazoo.exceptions import KazooException, NoAuthError

from harness import BINARY, Headgate, run, until, wait
from zookeeper import ZooKeeperEnsemble, ZooKeeperServer

RULE = """domain: edge
descriptors:
  - key: user
    rate_limit: {{requests_per_unit: {requests}, period: 1h, algorithm: token_bucket}}
"""


def limit(requests, seconds=3600):
    return json.dumps({"Limit": requests, "WindowSeconds": seconds}).encode()


def auth(server, key=None):
    """The status of a request to the forward-auth front."""
    return server.request("GET", "/auth", headers={"X-API-Key": key} if key else {})[0]


def limit_in_force(server, key="test-key"):
    decision = server.check(path="/v1/peek", api_key=key)[2]["decisions"][0]
    return decision.get("limit")


class ZooKeeperRules(unittest.TestCase):
    def setUp(self):
        self.zookeeper = self.enterContext(ZooKeeperServer())
        self.operator = self.zookeeper.client()
        self.addCleanup(self.operator.close)
        self.addCleanup(self.operator.stop)
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def serve(self, *args):
        words = ["--watch", self.zookeeper.url(), "--auth-header", "X-API-Key", "--watch-session-timeout", "1s", *args]
        return self.enterContext(Headgate(*words))

    def put(self, path, value):
        path = "/rate-limiter/" + path
        self.operator.ensure_path(os.path.dirname(path))
        if self.operator.exists(path):
            self.operator.set(path, value)
        else:
            self.operator.create(path, value)

    def test_a_key_by_hand(self):
        self.put("config/test-key", limit(10, 20))
        server = self.serve()
        self.assertEqual(auth(server), 401)
        self.assertEqual(auth(server, "other"), 403)
        statuses = [auth(server, "test-key") for _ in range(12)]
        self.assertEqual(statuses, [200] * 10 + [429] * 2)
        status, fields, _ = server.request("GET", "/auth", headers={"X-API-Key": "test-key"})
        self.assertEqual(status, 429)
        self.assertTrue(1 <= int(fields["retry-after"]) <= 20, fields)

        # The window goes on: exactly five more.
        self.put("config/test-key", limit(15, 20))
        until(lambda: limit_in_force(server) == 15, 1, "the new limit is in force")
        self.assertEqual([auth(server, "test-key") for _ in range(7)], [200] * 5 + [429] * 2)

        self.operator.delete("/rate-limiter/config/test-key")
        until(lambda: auth(server, "test-key") == 403, 1, "the limit is gone")

    def test_a_new_instance_waits_for_the_first_limit(self):
        server = self.serve()
        self.assertEqual(server.request("GET", "/readyz")[0], 503)
        until(lambda: "holds no rules and no limits yet" in server.errors(), 10, "the log says what it waits for")
        self.assertEqual(auth(server, "test-key"), 503)
        self.put("config/test-key", limit(10))
        until(lambda: auth(server, "test-key") == 200, 1, "the first limit is in force")
        self.assertEqual(server.request("GET", "/readyz")[0], 200)

    def test_rule_files_and_limits_beside_a_file(self):
        path = os.path.join(self.folder, "file.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(RULE.format(requests=7).replace("edge", "local"))
        self.put("rules/edge", RULE.format(requests=100).encode())
        self.put("config/a%2Fb", limit(3))
        server = self.serve("--rules", path)
        self.assertEqual(server.check("edge", cost=0, user="u")[2]["decisions"][0]["limit"], 100)
        self.assertEqual(server.check("local", cost=0, user="u")[2]["decisions"][0]["limit"], 7)
        self.assertEqual(limit_in_force(server, "a/b"), 3)

    def test_a_bad_document_is_refused_alone(self):
        self.put("config/good", limit(10))
        self.put("config/bad", limit(10))
        server = self.serve()
        self.put("config/bad", b'{"Limit": 1e309, "WindowSeconds": 20}')
        self.put("config/good", limit(20))
        until(lambda: limit_in_force(server, "good") == 20, 1, "the good one is in force")
        self.assertEqual(limit_in_force(server, "bad"), 10)
        until(lambda: server.metric("headgate_rule_problems") == 1, 1, "the problem is counted")
        self.assertIn("/rate-limiter/config/bad:1:11: Limit is not a whole number", server.errors())
        # An emptied document does not mean that there is no limit.
        self.put("config/bad", b"")
        until(lambda: "config/bad:1:1: the limit is empty" in server.errors(), 1, "the emptied one is named")
        self.assertEqual(limit_in_force(server, "bad"), 10)
        self.put("config/bad", limit(30))
        until(lambda: limit_in_force(server, "bad") == 30, 1, "the corrected one is in force")
        self.assertEqual(server.metric("headgate_rule_problems"), 0)

    def test_malformed_documents(self):
        good = limit(10).decode()
        malformed = [b"", b" ", b"null", b"[]", b"10", b'"x"', b"{", b"{]", good[:-1].encode(), b"\xef\xbb\xbf" + b"{}"]
        malformed += [b"\xff\xfe{}", b"\x00", b"{}", b'{"limit": 10, "WindowSeconds": 20}', b'{"Limit": 10}']
        malformed += [b'{"WindowSeconds": 20}', good.encode() + b"x", good.encode() + b"\n---\n{}"]
        malformed += [b'{"Limit": 10, "Limit": 10, "WindowSeconds": 20}', b"x" * 70_000, b"[" * 10_000, b'{"a":' * 10_000]
        malformed += [b"&a [*a, *a]", b"a: &a [1]\nb: [*a, *a]", b"{<<: {Limit: 10}}", b"!!binary aGFsbG8="]
        values = ["-1", "1.5", "1e309", "NaN", "Infinity", "9223372036854775808", "18446744073709551616", "true", "null"]
        values += ["[]", "{}", '"10"', "010", "0x10", "1_0", "+1", "-0", "1e1", "~", ".inf"]
        malformed += [f'{{"Limit": {v}, "WindowSeconds": 20}}'.encode() for v in values]
        malformed += [f'{{"Limit": 10, "WindowSeconds": {v}}}'.encode() for v in [*values, "0"]]
        words = ['"Algorithm": "x"', '"Algorithm": 1', '"Burst": 5', '"Align": "x"', '"Queue": 1']
        words += ['"MaxDelay": "2s"', '"Window": "20s"', '"Limits": []', '"Unlimited": true', '"Sharing": "x"', '"X": 1']
        words += ['"FallbackShare": 2', '"OnStoreFailure": "x"', '"ShadowMode": "yes"', '"Name": ""', '"CountDenied": 0']
        malformed += [f"{good[:-1]}, {w}}}".encode() for w in words]
        self.assertGreaterEqual(len(malformed), 80)
        self.put("config/good", limit(10))
        for i, text in enumerate(malformed):
            self.put(f"config/bad-{i}", text)
        server = self.serve()
        self.assertEqual(limit_in_force(server, "good"), 10)
        accepted = [text[:100] for i, text in enumerate(malformed) if auth(server, f"bad-{i}") != 403]
        self.assertEqual(accepted, [])
        self.assertEqual(server.metric("headgate_rules"), 1)
        self.assertGreaterEqual(server.metric("headgate_rule_problems"), len(malformed))

    def test_a_node_of_a_mebibyte(self):
        self.put("config/good", limit(10))
        self.put("config/large", b"x" * 1_000_000)
        server = self.serve()
        self.assertEqual(limit_in_force(server, "good"), 10)
        self.assertIn("config/large:1:1: longer than 65536 bytes", server.errors())

    def test_without_zookeeper(self):
        copy = os.path.join(self.folder, "copy")
        self.put("config/test-key", limit(10))
        with Headgate("--watch", self.zookeeper.url(), "--watch-copy", copy) as server:
            until(lambda: os.path.exists(copy), 5, "the copy is written")
            self.assertEqual(limit_in_force(server), 10)
            self.zookeeper.kill()
            until(lambda: server.metric("headgate_config_age_seconds") > 1, 10, "the age grows")
            self.assertEqual(limit_in_force(server), 10)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
        with Headgate("--watch", self.zookeeper.url(), "--watch-copy", copy) as server:
            self.assertEqual(limit_in_force(server), 10)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
        with Headgate("--watch", self.zookeeper.url()) as server:
            self.assertEqual(server.request("GET", "/readyz")[0], 503)
            until(lambda: "not read yet" in server.errors(), 10, "the log says why")
            self.zookeeper.start()
            until(lambda: server.request("GET", "/readyz")[0] == 200, 10, "it is ready")
            self.assertEqual(limit_in_force(server), 10)

    def test_an_accident_is_an_alarm(self):
        for i in range(10):
            self.put(f"config/key-{i}", limit(10))
        server = self.serve()
        self.operator.delete("/rate-limiter", recursive=True)
        until(lambda: server.metric("headgate_watch_kept_documents") == 10, 10, "all are kept")
        self.assertEqual(limit_in_force(server, "key-3"), 10)
        until(lambda: "10 documents were deleted at once; they stay in force" in server.errors(), 5, "the log says so")
        self.assertEqual(server.request("GET", "/readyz")[0], 200)

    def test_a_storm_of_changes(self):
        self.put("config/test-key", limit(1))
        server = self.serve()
        pending = [self.operator.set_async("/rate-limiter/config/test-key", limit(n)) for n in range(2, 1_002)]
        for one in pending:
            one.get()
        until(lambda: limit_in_force(server) == 1_001, 1, "the last one is in force")

    def test_the_login_of_a_url(self):
        for args in (("--watch", "zk://a:0/x"), ("--watch", "rules.yaml"), ("--watch", "zk://user:sec@ret:1x/x")):
            done = run(BINARY, "serve", *args)
            self.assertEqual(done.returncode, 2, done)
            self.assertRegex(done.stderr, "--watch")
            self.assertNotIn("sec", done.stderr)
        shown = run(BINARY, "serve", "--print-config", "--watch", self.zookeeper.url(login="gate:secret@"))
        self.assertIn(f'watch: ["zk://(hidden)@127.0.0.1:{self.zookeeper.port}/rate-limiter"]', shown.stdout)
        server = self.enterContext(Headgate("--watch", self.zookeeper.url("/private", login="gate:secret@"), "--log-level", "debug"))
        until(lambda: self.operator.exists("/private/config"), 10, "it makes its nodes")
        self.assertNotIn("secret", server.errors())
        with self.assertRaises(NoAuthError):
            self.operator.create("/private/config/x", limit(1))


class Fleet(unittest.TestCase):
    """Three instances with load, through the faults of an ensemble."""

    def test_every_instance_follows_within_a_second_through_all_faults(self):
        with ExitStack() as stack:
            ensemble = stack.enter_context(ZooKeeperEnsemble())
            operator = ensemble.client()
            stack.callback(operator.close)
            stack.callback(operator.stop)
            operator.ensure_path("/rate-limiter/config")
            operator.create("/rate-limiter/config/test-key", limit(1_000_000))
            servers = [
                stack.enter_context(
                    Headgate("--watch", ensemble.url(), "--auth-header", "X-API-Key", "--watch-session-timeout", "1s")
                )
                for _ in range(3)
            ]
            stopped = threading.Event()
            failures = []

            def load(server):
                while not stopped.is_set():
                    status = auth(server, "test-key")
                    if status != 200:
                        failures.append(status)

            threads = [threading.Thread(target=load, args=(server,)) for server in servers]
            for thread in threads:
                thread.start()
            try:
                self._change(operator, servers, 1_000_001)
                leader = ensemble.leader()
                leader.kill()
                self._change(operator, servers, 1_000_002, 15)
                leader.start(wait=False)
                leader.wait_until_serving()
                for server in ensemble.servers:
                    server.kill()
                until(lambda: all(s.metric("headgate_config_age_seconds") > 1 for s in servers), 15, "the ages grow")
                for server in ensemble.servers:
                    server.start(wait=False)
                for server in ensemble.servers:
                    server.wait_until_serving()
                self._change(operator, servers, 1_000_003, 15)
                # One instance is frozen until its session is over.
                servers[0].pause()
                wait(2)
                operator.set("/rate-limiter/config/test-key", limit(1_000_004))
                servers[0].resume()
                self._in_force(servers, 1_000_004, 10)
            finally:
                stopped.set()
                for thread in threads:
                    thread.join()
            self.assertEqual(failures, [])

    def _change(self, operator, servers, requests, seconds=1):
        until(lambda: self._set(operator, requests), 20, "the operator changes the limit")
        self._in_force(servers, requests, seconds)

    @staticmethod
    def _set(operator, requests):
        try:
            operator.set("/rate-limiter/config/test-key", limit(requests))
            return True
        except KazooException:
            return False

    @staticmethod
    def _in_force(servers, requests, seconds):
        for server in servers:
            until(lambda: limit_in_force(server) == requests, seconds, f"the limit {requests} is in force")


if __name__ == "__main__":
    unittest.main()
