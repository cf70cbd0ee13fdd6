"""Rules in ZooKeeper, followed by real instances."""

import json
import os
import signal
import tempfile
import threading
import unittest
from contextlib import ExitStack

from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.security import make_digest_acl

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

    def serve(self, *args, **more):
        words = ["--watch", self.zookeeper.url(), "--auth-header", "X-API-Key", "--watch-session-timeout", "1s", *args]
        return self.enterContext(Headgate(*words, **more))

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

        # The window continues: exactly five more.
        self.put("config/test-key", limit(15, 20))
        until(lambda: limit_in_force(server) == 15, 1, "the new limit is in force")
        self.assertEqual([auth(server, "test-key") for _ in range(7)], [200] * 5 + [429] * 2)

        self.operator.delete("/rate-limiter/config/test-key")
        until(lambda: auth(server, "test-key") == 403, 1, "the limit is gone")

    def test_a_key_whose_requests_in_flight_are_limited(self):
        def in_flight(requests, **more):
            return json.dumps({"Limit": requests, "Algorithm": "concurrency", "Ttl": "60s", **more}).encode()

        def ask(path, **more):
            body = {"descriptors": [{"entries": [{"key": "api_key", "value": "test-key"}]}], **more}
            status, _, text = server.request("POST", path, json.dumps(body))
            return status, json.loads(text)

        self.put("config/test-key", in_flight(2))
        server = self.serve()
        self.assertEqual([ask("/v1/acquire", id=f"job-{i}")[0] for i in range(2)], [200, 200])
        self.assertEqual(ask("/v1/acquire", id="job-2")[0], 429)
        # Forward-auth only peeks: it denies while all permits are taken, and takes none.
        status, fields, _ = server.request("GET", "/auth", headers={"X-API-Key": "test-key"})
        self.assertEqual(status, 429)
        self.assertTrue(1 <= int(fields["retry-after"]) <= 60, fields)
        self.assertTrue(ask("/v1/release", id="job-0")[1]["released"])
        self.assertEqual([auth(server, "test-key") for _ in range(5)], [200] * 5)
        looks = 'headgate_permits_total{domain="default",rule="api_key_test-key",event="looked_at"}'
        self.assertEqual(server.metric(looks), 6)

        # The permits that are held count against a changed limit.
        self.put("config/test-key", in_flight(3))
        until(lambda: limit_in_force(server) == 3, 10, "the new limit is in force")
        self.assertEqual([ask("/v1/acquire", id=f"more-{i}")[0] for i in range(3)], [200, 200, 429])
        self.put("config/test-key", in_flight(4, WindowSeconds=20))
        until(lambda: server.metric("headgate_rule_problems") == 1, 10, "the problem is counted")
        self.assertIn("/rate-limiter/config/test-key:1:73: WindowSeconds does not apply to concurrency", server.errors())
        self.assertEqual(limit_in_force(server), 3)
        self.put("config/test-key", limit(10))
        until(lambda: limit_in_force(server) == 10, 10, "it is a window")
        self.assertEqual(auth(server, "test-key"), 200)

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

    def test_names_that_are_not_escaped(self):
        """As people and other programs make them; ZooKeeper takes them."""
        names = ["a b", "müller", "鍵", "100%", "a%2fb"]
        for name in names:
            self.put(f"config/{name}", limit(10))
        server = self.serve()
        for key in ["a b", "müller", "鍵", "100%", "a/b"]:
            self.assertEqual(limit_in_force(server, key), 10, key)
        self.put("config/müller", limit(11))
        until(lambda: limit_in_force(server, "müller") == 11, 1, "it changes")
        until(lambda: server.metric("headgate_config_age_seconds") == 0, 5, "everything is read")
        self.assertEqual(server.metric("headgate_rule_problems"), 0)

    def test_a_second_node_for_a_key_is_not_used(self):
        self.put("config/test-key", limit(10))
        self.put("config/%74est-key", limit(99))
        server = self.serve()
        self.assertEqual(limit_in_force(server), 10)
        self.assertIn("config/%74est-key: is a second limit of the key whose limit is in", server.errors())
        self.put("config/%74est-key", limit(98))
        self.operator.delete("/rate-limiter/config/test-key")
        until(lambda: limit_in_force(server) == 98, 1, "the only one is in force")
        self.put("config/test-key", limit(11))
        until(lambda: limit_in_force(server) == 11, 1, "the usual name is in force again")

    def test_key_finds_a_node_whose_name_others_have_encoded(self):
        for name in ("é", "a b", "%74est"):
            self.put(f"config/{name}", limit(10))
        server = self.serve(admin="127.0.0.1:0")
        rules = lambda verb, *words: run(BINARY, "rules", verb, "--server", f"127.0.0.1:{server.admin_port}", *words)
        new = os.path.join(self.folder, "new.json")
        with open(new, "wb") as file:
            file.write(limit(12))
        for key, name in (("é", "é"), ("a b", "a b"), ("test", "%74est")):
            until(lambda: limit_in_force(server, key) == 10, 5, key)
            got = rules("get", "--key", key)
            self.assertEqual(got.stdout.strip().encode(), limit(10), key + got.stderr)
            done = rules("put", "--key", key, new, "--yes")
            self.assertEqual(done.returncode, 0, done.stderr)
            until(lambda: limit_in_force(server, key) == 12, 5, f"{key} has changed")
            self.assertEqual(self.operator.get(f"/rate-limiter/config/{name}")[0], limit(12))
        done = rules("delete", "--key", "é", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(self.operator.exists("/rate-limiter/config/é"))

    def test_a_document_that_contradicts_one_in_force_is_refused(self):
        self.put("rules/z", RULE.format(requests=10).encode())
        self.put("config/other", limit(7))
        server = self.serve("--rule", "api_key=line: 3/hour")
        peek = lambda **entry: server.check(path="/v1/peek", **entry)[2]["decisions"][0].get("limit")
        of_user = lambda: peek(domain="edge", user="u")
        until(lambda: of_user() == 10, 5, "the rule is in force")
        # A node before it with the same domain, and a limit that the command line has.
        self.put("rules/a", RULE.format(requests=99).encode())
        self.put("config/line", limit(50))
        until(lambda: server.metric("headgate_rule_problems") == 2, 5, "both are problems")
        self.assertEqual((of_user(), limit_in_force(server, "line")), (10, 3))
        # The others are still followed.
        self.put("config/other", limit(8))
        until(lambda: limit_in_force(server, "other") == 8, 2, "a change applies")
        self.put("rules/z", RULE.replace("edge", "moved").format(requests=11).encode())
        until(lambda: of_user() == 99, 2, "it no longer contradicts")
        self.assertEqual(peek(domain="moved", user="u"), 11)

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
            self.assertIn("rules.source_followed", server.errors())
            self.zookeeper.kill()
            until(lambda: "rules.source_lost" in server.errors(), 10, "the log says so")
            until(lambda: server.metric("headgate_config_age_seconds") > 1, 10, "the age grows")
            self.assertEqual(limit_in_force(server), 10)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
        with Headgate("--watch", self.zookeeper.url(), "--watch-copy", copy) as server:
            self.assertEqual(limit_in_force(server), 10)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
            self.assertIn(f"rules.copy_used source={self.zookeeper.url()}", server.errors())
            self.assertNotIn("rules.source_followed", server.errors())
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

    def test_a_document_that_is_replaced_in_one_transaction_is_followed(self):
        self.put("config/test-key", limit(1))
        server = self.serve()
        for n in range(2, 7):
            replace = self.operator.transaction()
            replace.delete("/rate-limiter/config/test-key")
            replace.create("/rate-limiter/config/test-key", limit(n))
            replace.commit()
            until(lambda: limit_in_force(server) == n, 1, f"{n} is in force")
        self.put("config/test-key", limit(10))
        until(lambda: limit_in_force(server) == 10, 1, "it is followed")
        self.assertEqual(server.metric("headgate_watch_missed_changes_total"), 0)

    def test_a_new_instance_does_not_hide_that_everything_was_deleted(self):
        copy = os.path.join(self.folder, "copy")
        self.put("config/test-key", limit(1))
        running = self.serve("--watch-copy", copy)
        self.assertEqual([auth(running, "test-key") for _ in range(2)], [200, 429])
        until(lambda: os.path.exists(copy), 5, "the copy is written")
        self.operator.delete("/rate-limiter", recursive=True)
        until(lambda: running.metric("headgate_watch_kept_documents") == 1, 10, "the limit is kept")
        new = self.serve()
        until(lambda: self.operator.exists("/rate-limiter/config"), 10, "a new instance makes the directories")
        self.assertEqual(new.request("GET", "/readyz")[0], 503)
        running.stop()
        # An instance that restarts, and one that loses its connection.
        again = self.serve("--watch-copy", copy)
        until(lambda: "rules.source_followed" in again.errors(), 10, "it has read the ensemble")
        self.zookeeper.kill()
        until(lambda: again.metric("headgate_config_age_seconds") > 0, 10, "the connection is lost")
        self.zookeeper.start()
        until(lambda: again.metric("headgate_config_age_seconds") == 0, 10, "it is back")
        self.assertEqual(again.metric("headgate_watch_kept_documents"), 1)
        self.assertEqual([auth(again, "test-key") for _ in range(2)], [200, 429])
        self.assertIn("1 document was deleted and stays in force", again.errors())

    def test_a_storm_of_changes(self):
        self.put("config/test-key", limit(1))
        server = self.serve()
        pending = [self.operator.set_async("/rate-limiter/config/test-key", limit(n)) for n in range(2, 1_002)]
        for one in pending:
            one.get()
        until(lambda: limit_in_force(server) == 1_001, 1, "the last one is in force")

    def test_a_password_in_a_file(self):
        file = self.enterContext(tempfile.NamedTemporaryFile("w"))
        file.write("se/cr:et\n")
        file.flush()
        words = ("--watch", self.zookeeper.url("/private", login="gate@"), "--watch-password-file", file.name, "--log-level", "debug")
        shown = run(BINARY, "serve", "--print-config", *words)
        self.assertIn(f'watch_password_file: "{file.name}"', shown.stdout)
        self.assertNotIn("se/cr:et", shown.stdout)
        server = self.enterContext(Headgate(*words))
        until(lambda: self.operator.exists("/private/config"), 10, "it makes its nodes")
        self.assertNotIn("se/cr:et", server.errors())
        with self.assertRaises(NoAuthError):
            self.operator.create("/private/config/x", limit(1))
        self.operator.add_auth("digest", "gate:se/cr:et")
        self.operator.create("/private/config/x", limit(1))

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


class Instances(unittest.TestCase):
    """The nodes of instances that follow the rules, and what their number is used for."""

    REQUESTS = 60

    def setUp(self):
        self.zookeeper = self.enterContext(ZooKeeperServer())
        self.operator = self.zookeeper.client()
        self.addCleanup(self.operator.close)
        self.addCleanup(self.operator.stop)
        self.operator.ensure_path("/rate-limiter/rules")
        self.operator.create("/rate-limiter/rules/edge", RULE.format(requests=self.REQUESTS).encode())

    def serve(self, *args, threads=1):
        words = ["--watch", self.zookeeper.url(), "--watch-session-timeout", "1s", "--threads", str(threads), *args]
        return self.enterContext(Headgate(*words))

    def shown(self):
        """The data of the nodes by their names."""
        names = self.operator.get_children("/rate-limiter/instances")
        nodes = {}
        for name in names:
            try:
                nodes[name] = json.loads(self.operator.get(f"/rate-limiter/instances/{name}")[0])
            except NoNodeError:
                pass  # It went after the list was read.
        return nodes

    def all_show(self, generation, count=3):
        nodes = self.shown().values()
        rules = {(node["rules_generation"], node["rules_fingerprint"]) for node in nodes}
        return len(nodes) == count and len(rules) == 1 and rules.pop()[0] == generation

    def admitted(self, server, user):
        return sum(server.check("edge", user=user)[0] == 200 for _ in range(self.REQUESTS + 10))

    def test_three_instances_are_shown_and_divide_a_limit_without_their_store(self):
        # A store that nobody has ever reached counts nobody.
        servers = [self.serve("--store", "redis://127.0.0.1:1") for _ in range(3)]
        until(lambda: self.all_show(1), 10, "all three show the first rules")
        before = self.shown()
        for node in before.values():
            self.assertEqual(sorted(node), ["host", "rules_fingerprint", "rules_generation", "started", "version"])
            self.assertRegex(node["started"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.operator.set("/rate-limiter/rules/edge", RULE.format(requests=self.REQUESTS).encode() + b"# changed\n")
        until(lambda: self.all_show(2), 5, "all three show the change")
        self.assertEqual(sorted(self.shown()), sorted(before), "the nodes are the same")
        fingerprints = {node["rules_fingerprint"] for node in [*before.values(), *self.shown().values()]}
        self.assertEqual(len(fingerprints), 2)

        for server in servers:
            until(lambda: server.metric("headgate_instances") == 3, 5, "three are counted")
            self.assertEqual(server.metric("headgate_watch_instances"), 3)
            self.assertEqual(self.admitted(server, "three"), self.REQUESTS // 3)
            self.assertIn("instances.changed instances=3", server.errors())
        servers.pop().stop(signal.SIGKILL)
        for server in servers:
            until(lambda: server.metric("headgate_instances") == 2, 15, "two are counted")
            self.assertEqual(self.admitted(server, "two"), self.REQUESTS // 2)
            until(lambda: "instances.changed instances=2 before=3" in server.errors(), 5, "the log says so")
        self.assertEqual(len(self.shown()), 2)
        servers.pop().stop()
        self.assertEqual(len(self.shown()), 1, "an instance that stops takes its node away")

    def test_an_instance_whose_session_expires_is_never_shown_twice(self):
        servers = [self.serve() for _ in range(3)]
        until(lambda: self.all_show(1), 10, "all three are shown")
        names = sorted(self.shown())
        most = 0
        stopped = threading.Event()

        def watch():
            nonlocal most
            while not stopped.is_set():
                most = max(most, len(self.operator.get_children("/rate-limiter/instances")))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for _ in range(3):
                servers[0].pause()
                until(lambda: len(self.shown()) == 2, 10, "its session has expired")
                servers[0].resume()
                until(lambda: self.all_show(1), 10, "it is shown again")
        finally:
            servers[0].resume()
            stopped.set()
            watcher.join()
        self.assertEqual(most, 3)
        self.assertEqual(sorted(self.shown()), names)

    def test_a_store_in_the_same_place_shows_the_instance(self):
        servers = [self.serve("--store", self.zookeeper.url(), threads=2) for _ in range(2)]
        until(lambda: self.all_show(1, count=2), 10, "each is shown once")
        self.operator.set("/rate-limiter/rules/edge", RULE.format(requests=7).encode())
        until(lambda: self.all_show(2, count=2), 5, "both show the change")
        for server in servers:
            until(lambda: server.metric("headgate_instances") == 2, 5, "two are counted")
            self.assertEqual(server.metric("headgate_watch_instances"), 0)

    def test_a_user_who_may_not_make_the_node_still_follows_the_rules(self):
        owner = self.zookeeper.client()
        self.addCleanup(owner.close)
        self.addCleanup(owner.stop)
        owner.add_auth("digest", "owner:secret")
        owner.create("/rate-limiter/instances", acl=[make_digest_acl("owner", "secret", all=True)])
        server = self.serve()
        until(lambda: "instances.refused" in server.errors(), 10, "the log says so")
        self.assertEqual(server.check("edge", user="u")[0], 200)
        self.assertEqual(server.metric("headgate_rule_problems"), 0)


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
                # A follower is paused, and is behind the others when it continues.
                follower = ensemble.follower()
                follower.pause()
                self._change(operator, servers, 1_000_003, 15)
                self._change(operator, servers, 1_000_004, 15)
                follower.resume()
                follower.wait_until_serving()
                self._in_force(servers, 1_000_004, 1)
                # A minority serves nobody.
                rest = [server for server in ensemble.servers if server is not follower]
                for server in rest:
                    server.kill()
                until(lambda: all(s.metric("headgate_config_age_seconds") > 1 for s in servers), 15, "the ages grow")
                self._in_force(servers, 1_000_004, 1)
                for server in rest:
                    server.start(wait=False)
                for server in rest:
                    server.wait_until_serving()
                self._change(operator, servers, 1_000_005, 15)
                for server in ensemble.servers:
                    server.kill()
                until(lambda: all(s.metric("headgate_config_age_seconds") > 1 for s in servers), 15, "the ages grow")
                for server in ensemble.servers:
                    server.start(wait=False)
                for server in ensemble.servers:
                    server.wait_until_serving()
                self._change(operator, servers, 1_000_006, 15)
                # One instance is frozen until its session is over.
                servers[0].pause()
                wait(2)
                operator.set("/rate-limiter/config/test-key", limit(1_000_007))
                servers[0].resume()
                self._in_force(servers, 1_000_007, 10)
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
