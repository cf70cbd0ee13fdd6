"""Rules in front of the sidecar's pool: requests that are refused or held, files that change, and the
path that a rule matches."""

import os
import subprocess
import tempfile
import threading
import time
import unittest

from harness import BINARY, RedisServer, Sidecar, read_all, replace_file, require, run, until
from upstreams import Nginx, Upstream

RULE = """domain: default
descriptors:
  - key: client
    rate_limit: {{requests_per_unit: {requests}, period: 1h, algorithm: fixed_window}}
"""
QUEUE = """domain: default
descriptors:
  - key: client
    rate_limit: {requests_per_unit: 5, period: 1s, burst: 3, algorithm: leaky_bucket, queue: true}
"""
SIZES = """domain: default
descriptors:
  - key: client{words}
    rate_limit:
      requests_per_unit: 100
      period: 1h
      algorithm: fixed_window
      align: first_hit
      cost: {{of: response_bytes, per: 1KiB, reserve: 4KiB}}
"""
MAPPINGS = """mappings:
- path: /free/*
- path: /api/*
  descriptors:
  - entries: [{key: path, path: true}, {key: token, header: X-Token}]
- require_rule: true
  descriptors: []
"""
PATHS = """domain: default
descriptors:
  - key: path
    value: /api/a
    descriptors:
      - key: token
        rate_limit: {requests_per_unit: 2, period: 1h, algorithm: token_bucket}
"""
CLIENT = {"X-Client-Id": "ann"}


def answer(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    return True


class Rules(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.upstream = Upstream(self, answer)

    def write(self, text, name="rules.yaml"):
        return replace_file(os.path.join(self.folder, name), text)

    def start(self, *args, **options):
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=args, **options))
        return self.sidecar

    def get(self, path="/", headers=CLIENT):
        return self.sidecar.request("GET", path, headers=headers)

    def status(self, path="/", headers=CLIENT):
        return self.get(path, headers)[0]

    def test_a_rule_denies_and_an_edit_counts_at_once(self):
        self.start("--rules", self.write(RULE.format(requests=3)))
        for remaining in (2, 1, 0):
            status, fields, text = self.get()
            self.assertEqual((status, text), (200, "ok"))
            self.assertEqual(fields["ratelimit-policy"], '"client";q=3;w=3600')
            self.assertTrue(fields["ratelimit"].startswith(f'"client";r={remaining};t='), fields["ratelimit"])
        status, fields, text = self.get()
        self.assertEqual(status, 429)
        self.assertIn(int(fields["retry-after"]), range(1, 3601))
        self.assertIn('"client";r=0', fields["ratelimit"])
        self.assertEqual(fields["content-type"], "application/problem+json")
        self.assertIn("over the limit", text)
        self.assertEqual(len(self.upstream.heads), 3)
        self.assertEqual(self.status(headers={"X-Client-Id": "bob"}), 200)
        self.write(RULE.format(requests=300))
        until(lambda: self.status() == 200, 2, "the new limit is in force")
        self.write("domain: default\ndescriptors:\n  - key: client\n    rate_limt: {}\n")
        until(lambda: "unknown key 'rate_limt'" in self.sidecar.errors(), 2, "the log names the problem")
        self.assertEqual(self.status(), 200)
        metric = self.sidecar.metric
        self.assertGreaterEqual(metric('headgate_auth_requests_total{outcome="denied"}'), 1)
        self.assertGreaterEqual(metric('headgate_proxy_requests_total{outcome="refused"}'), 1)
        self.assertEqual(metric('headgate_rule_reloads_total{result="refused"}'), 1)

    def test_a_refusal_of_a_rule_takes_nothing_from_the_pool(self):
        self.start("--rule", "client=ann: 2/hour", "--cycle", "1h", capacity=4)
        self.assertEqual([self.status() for _ in range(6)], [200, 200, 429, 429, 429, 429])
        bob = {"X-Client-Id": "bob"}
        # Each has a share of two, and no rule concerns bob.
        self.assertEqual([self.status(headers=bob) for _ in range(3)], [200, 200, 429])
        self.assertEqual(self.sidecar.metric('headgate_share_requests_total{client="ann",outcome="rejected"}'), 0)

    def test_a_refusal_of_the_pool_takes_nothing_from_a_rule(self):
        self.start("--rule", "client: 3/hour", "--cycle", "1h", capacity=2)
        self.assertEqual([self.status() for _ in range(5)], [200, 200, 429, 429, 429])
        self.assertIn('"fair-share"', self.get()[1]["ratelimit"])
        self.assertEqual(self.sidecar.metric('headgate_auth_requests_total{outcome="allowed"}'), 2)

    def test_a_queue_spaces_requests(self):
        self.start("--rules", self.write(QUEUE))
        arrivals = []
        statuses = []
        ready = threading.Barrier(5)

        def serve(connection, _):
            arrivals.append(time.monotonic())
            return answer(connection, _)

        self.upstream.serve = serve

        def ask():
            ready.wait()
            statuses.append(self.status())

        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One proceeds, three wait, and one is denied.
        self.assertEqual(sorted(statuses), [200, 200, 200, 200, 429])
        for before, after in zip(arrivals, arrivals[1:]):
            self.assertGreater(after - before, 0.15)
        self.assertEqual(self.sidecar.metric("headgate_auth_held"), 0)

    def test_a_client_that_leaves_while_its_request_is_held(self):
        require("curl")
        self.start("--rule", "client: 1/minute burst 5 queue")
        self.assertEqual(self.status(), 200)
        # A client of HTTP/1 that closes after its whole request may still wait for the answer.
        with self.sidecar.connect() as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nContent-Length: 5\r\n\r\nhe")
            until(lambda: self.sidecar.metric("headgate_auth_held") == 1, 5, "it is held")
        until(lambda: self.sidecar.metric("headgate_auth_held") == 0, 5, "its place is free")
        url = f"http://127.0.0.1:{self.sidecar.port}/"
        done = run("curl", "-s", "--http2-prior-knowledge", "--max-time", "1", "-H", "X-Client-Id: ann", url)
        self.assertEqual(done.returncode, 28, "a timeout")
        until(lambda: self.sidecar.metric("headgate_auth_held") == 0, 5, "its place is free")
        self.assertEqual(self.sidecar.metric("headgate_proxy_held_left_total"), 2)
        self.assertEqual(len(self.upstream.heads), 1)
        self.assertEqual(self.sidecar.stop(), 0)

    def test_a_request_that_is_not_held_takes_no_turn(self):
        redis = self.enterContext(RedisServer())
        stores = ((), ("--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "2s"))
        head = b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: %s\r\nContent-Length: 5\r\n\r\nhe"
        for store in stores:
            with self.subTest(store=store):
                args = ("--rule", "client: 1/hour burst 3 queue", "--queue", "1", "--threads", "1", *store)
                sidecar = self.start(*args)
                bob = {"X-Client-Id": "bob"}
                self.assertEqual((self.status(), self.status(headers=bob)), (200, 200))
                with sidecar.connect() as ann:
                    ann.sendall(head % b"ann")
                    until(lambda: sidecar.metric("headgate_auth_held") == 1, 5, "ann has the only place")
                    self.assertEqual([self.status(headers=bob) for _ in range(6)], 6 * [503])
                until(lambda: sidecar.metric("headgate_auth_held") == 0, 5, "the place is free")
                with sidecar.connect() as connection:
                    connection.sendall(head % b"bob")
                    until(lambda: sidecar.metric("headgate_auth_held") == 1, 5, "bob has all of his turns")
                self.assertEqual(sidecar.metric("headgate_proxy_held_refused_total"), 6)

    def test_a_body_waits_with_its_request(self):
        nginx = Nginx(self)
        sidecar = self.enterContext(Sidecar(nginx.port, args=("--rule", "client: 2/second burst 9 queue")))
        body = os.urandom(5_000_000)
        path = os.path.join(self.folder, "body")
        with open(path, "wb") as file:
            file.write(body)
        clients = []
        for number, version in enumerate(("--http1.1", "--http2-prior-knowledge") * 2):
            url = f"http://127.0.0.1:{sidecar.port}/put/{number}"
            words = ("curl", "-s", "--max-time", "30", version, "-H", "X-Client-Id: ann", "-H", "Expect:", "-T", path, url)
            clients.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        for client in clients:
            self.assertEqual(client.wait(30), 0)
        for number in range(4):
            with open(nginx.path(f"put/{number}"), "rb") as file:
                self.assertEqual(file.read(), body)
        self.assertEqual(sidecar.metric("headgate_auth_held"), 0)

    def test_the_pool_may_refuse_a_request_at_its_turn(self):
        mappings = "mappings:\n- path: /queue\n  descriptors:\n  - entries: [{key: queue, value: x}]\n"
        self.start(
            *("--rule", "queue: 20/minute burst 5 queue", "--mappings", self.write(mappings, "map.yaml")),
            *("--cycle", "1h"),
            capacity=2,
        )
        self.assertEqual(self.status("/queue"), 200)
        with self.sidecar.connect() as connection:
            connection.sendall(b"POST /queue HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nContent-Length: 5\r\n\r\nhe")
            until(lambda: self.sidecar.metric("headgate_auth_held") == 1, 5, "it is held")
            self.assertEqual(self.status("/other"), 200)
            answer_text = read_all(connection)
        self.assertTrue(answer_text.startswith(b"HTTP/1.1 429 "), answer_text)
        self.assertIn(b'RateLimit: "fair-share";r=0', answer_text)
        self.assertEqual(len(self.upstream.heads), 2)

    def test_mappings(self):
        self.start("--rules", self.write(PATHS), "--mappings", self.write(MAPPINGS, "map.yaml"))
        token = {**CLIENT, "X-Token": "t"}
        self.assertEqual(self.status("/free/x"), 200)
        self.assertEqual(self.status("/api/a"), 401)
        self.assertEqual(self.status("/other"), 403)
        self.assertEqual(self.status("/api/b", token), 200)
        # One bucket for all spellings of a path, and the upstream gets the one that was matched.
        self.assertEqual(self.status("/api/a?x=1", token), 200)
        self.assertEqual(self.status("/api/.//b/../%61?x=//2", token), 200)
        self.assertEqual(self.status("/api/a", token), 429)
        for path in ("/api%2fa", "/api//../a", "/api/../../a", "/api/%00", "/api/a%"):
            self.assertEqual(self.status(path, token), 400, path)
        lines = [head.split("\r\n")[0] for head in self.upstream.heads]
        self.assertEqual(
            lines,
            ["GET /free/x HTTP/1.1", "GET /api/b HTTP/1.1", "GET /api/a?x=1 HTTP/1.1", "GET /api/%61?x=//2 HTTP/1.1"],
        )
        self.write(MAPPINGS.replace("/free/*", "/other"), "map.yaml")
        until(lambda: self.status("/other") == 200, 2, "the new mappings are in force")
        self.assertEqual(self.status("/free/x"), 403)

    def test_sidecars_share_a_rule_through_a_store(self):
        redis = self.enterContext(RedisServer())
        rules = self.write(RULE.format(requests=5).replace("fixed_window", "fixed_window, sharing: exact"))
        store = ("--rules", rules, "--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "2s")
        pair = [self.enterContext(Sidecar(self.upstream.port, args=store)) for _ in range(2)]
        statuses = [sidecar.request("GET", "/", headers=CLIENT)[0] for sidecar in pair * 4]
        self.assertEqual(sorted(statuses), [200] * 5 + [429] * 3)
        self.assertEqual(len(self.upstream.heads), 5)
        self.assertEqual(pair[0].request("GET", "/readyz", port=pair[0].admin_port)[0], 200)
        redis.kill()
        # Each alone decides by its share of the limit, or the one that was left last.
        self.assertIn(pair[0].request("GET", "/", headers={"X-Client-Id": "bob"})[0], (200, 429))
        for sidecar in pair:
            self.assertEqual(sidecar.stop(), 0)

    def test_passthrough_lets_go_at_once_what_is_held(self):
        self.start("--rule", "client: 1/hour burst 5 queue")
        self.assertEqual(self.status(), 200)
        statuses = []
        clients = [threading.Thread(target=lambda: statuses.append(self.status())) for _ in range(3)]
        for client in clients:
            client.start()
        until(lambda: self.sidecar.metric("headgate_auth_held") == 3, 10, "three requests are held")
        self.sidecar.request("PATCH", "/v1/sidecar", body='{"mode": "passthrough"}', port=self.sidecar.admin_port)
        for client in clients:
            client.join(10)
        self.assertEqual(statuses, [200] * 3)

    def test_passthrough_only_counts_and_ends_live(self):
        self.start("--rule", "client: 1/hour", "--mode", "passthrough")
        self.assertEqual([self.status() for _ in range(3)], [200, 200, 200])
        self.assertEqual(self.sidecar.metric("headgate_proxy_let_through_total"), 2)
        done = self.sidecar.request("PATCH", "/v1/sidecar", body='{"mode":"enforce"}', port=self.sidecar.admin_port)
        self.assertEqual(done[0], 200, done)
        self.assertEqual(self.status(), 429)

    def test_a_dry_run_charges_sizes_as_enforcement_does(self):
        """30 units each: three fit, the fourth overdraws the bucket, two are denied."""

        def large(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 30720\r\n\r\n" + bytes(30720))
            return True

        self.upstream = Upstream(self, large)
        in_shadow = "\n    shadow_mode: true"
        for words, args, passed, outcome in (
            ("", (), 4, "denied"),
            ("", ("--mode", "passthrough"), 6, "denied"),
            (in_shadow, (), 6, "shadow_denied"),
        ):
            with self.subTest(words=words, args=args):
                sidecar = self.start("--rules", self.write(SIZES.format(words=words)), *args)
                statuses = [self.status() for _ in range(6)]
                self.assertEqual(statuses, [200] * passed + [429] * (6 - passed))
                units = {
                    event: sidecar.metric(f'headgate_size_units_total{{event="{event}"}}')
                    for event in ("taken", "returned", "lapsed", "forgotten")
                }
                # 26 beyond each reserve.
                self.assertEqual(units, {"taken": 104, "returned": 0, "lapsed": 0, "forgotten": 0})
                denied = f'headgate_decisions_total{{domain="default",rule="client",outcome="{outcome}"}}'
                self.assertEqual(sidecar.metric(denied), 2)
                if args:
                    sidecar.request("PATCH", "/v1/sidecar", body='{"mode":"enforce"}', port=sidecar.admin_port)
                    self.assertEqual(self.status(), 429)

    def test_in_a_dry_run_what_the_pool_would_refuse_takes_nothing_from_a_rule(self):
        self.start("--rule", "client: 5/hour", "--mode", "passthrough", "--cycle", "1h", capacity=2)
        self.assertEqual([self.status() for _ in range(6)], [200] * 6)
        self.assertEqual(self.sidecar.metric("headgate_share_counted_only_total"), 4)
        self.assertEqual(self.sidecar.metric("headgate_proxy_let_through_total"), 0)

    def test_in_a_dry_run_what_a_rule_would_refuse_takes_nothing_from_the_pool(self):
        self.start("--rule", "client: 2/hour", "--mode", "passthrough", "--cycle", "1h", capacity=10)
        self.assertEqual([self.status() for _ in range(6)], [200] * 6)
        self.assertEqual(self.sidecar.metric("headgate_proxy_let_through_total"), 4)
        self.assertEqual(self.sidecar.metric('headgate_share_requests_total{client="ann",outcome="allowed"}'), 2)
        self.assertEqual(self.sidecar.metric("headgate_share_counted_only_total"), 0)

    def test_the_admin_address_changes_rules_as_that_of_serve(self):
        path = self.write(RULE.format(requests=1))
        log = os.path.join(self.folder, "audit.jsonl")
        password = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        users = self.write(f"ann admin {password}\nbob read {password}\n", "users")
        sidecar = self.start("--rules", path, "--audit-log", log, "--users-file", users)
        self.assertEqual([self.get()[0] for _ in range(2)], [200, 429])

        address = ("--server", f"127.0.0.1:{sidecar.admin_port}")
        changed = self.write("rate_limit: {requests_per_unit: 3, period: 1h, algorithm: fixed_window}\n", "one.yaml")
        for user, code in (("bob", 2), ("ann", 0)):
            login = self.write(f"{user}:apple\n", "login")
            result = run(BINARY, "rules", "put", *address, "--credential-file", login, "--yes", "default", "client=", changed)
            self.assertEqual(result.returncode, code, (user, result.stderr))
        until(lambda: self.get()[0] == 200, 10, "the new limit is in force")
        with open(log, encoding="utf-8") as notes:
            self.assertIn('"user":"ann"', notes.read())
        login = {"Authorization": "Basic YW5uOmFwcGxl", "Content-Type": "application/json"}
        began = sidecar.request("PUT", "/v1/passthrough", "{}", headers=login, port=sidecar.admin_port)
        self.assertEqual(began[0], 200, began)
        self.assertEqual([self.get()[0] for _ in range(5)], [200] * 5)

    def test_wrong_settings_are_reported_at_the_start(self):
        words = (BINARY, "sidecar", "--upstream", "http://127.0.0.1:1", "--capacity", "1", "--listen", "127.0.0.1:0")
        path = self.write(MAPPINGS, "map.yaml")
        self.assertEqual(run(BINARY, "validate", "--mappings", path).stdout, "valid: 3 mappings\n")
        self.assertIn("trusted_proxies is missing", run(BINARY, "validate", "--auth", path).stderr)
        for more, what in (
            (("--rules", self.write("domain: default\ndescriptors: 7\n")), "rules.yaml:2:"),
            (("--rule", "client 5"), "client 5"),
            (("--rule", "client: 5/second", "--mappings", self.write("mappings: 7\n", "bad.yaml")), "bad.yaml:1:"),
            (("--mappings", path), "--mappings without rules"),
            (("--rule", "client: 5/second", "--store", "http://x"), "--store: 'http' is not known"),
        ):
            with self.subTest(more):
                done = run(*words, *more)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(what, done.stderr)
                self.assertIn("hint:", done.stderr)


if __name__ == "__main__":
    unittest.main()
