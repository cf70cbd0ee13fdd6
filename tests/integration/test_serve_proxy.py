"""`headgate serve` with an address of the proxy: one process that answers checks and passes requests on. Both count in
the same buckets, follow the same rules, and have one admin address."""

import json
import os
import tempfile
import threading
import unittest

from harness import BINARY, PATIENT, Headgate, RedisServer, Sidecar, replace_file, require_redis, run, until
from resp import Replies, encode
from upstreams import Nginx, Upstream

RULE = """domain: default
descriptors:
  - key: client
    rate_limit: {{requests_per_unit: {requests}, period: 1h, algorithm: fixed_window}}
"""
MAPPINGS = """mappings:
- path: /free/*
- descriptors: [{entries: [{key: client, header: X-Client-Id}]}]
"""
AUTH = """trusted_proxies: [127.0.0.1]
mappings:
- descriptors: [{entries: [{key: client, header: X-User}]}]
"""


class OneProcess(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.nginx = Nginx(self)

    def write(self, name, text):
        return replace_file(os.path.join(self.folder, name), text)

    def start(self, *args, upstream=None, capacity=1_000_000):
        """Its `port` is that of the fronts, `proxy_port` that of the proxy."""
        words = ("--listen-proxy", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream or self.nginx.port}")
        server = self.enterContext(Headgate(*words, "--capacity", str(capacity), "--admin-listen", "127.0.0.1:0", *args))
        server.proxy_port = server.wait_for(r"listening on 127\.0\.0\.1:(\d+)\n")
        server.admin_port = server.wait_for(r"admin on 127\.0\.0\.1:(\d+)\n")
        return server

    @staticmethod
    def get(server, client="ann", path="/small"):
        return server.request("GET", path, headers={"X-Client-Id": client}, port=server.proxy_port)

    def test_checks_and_proxied_requests_count_in_the_same_buckets(self):
        server = self.start("--rule", "client: 3/hour")
        self.assertEqual(self.get(server)[::2], (200, "hello\n"))
        status, _, answer = server.check(client="ann")
        self.assertEqual((status, answer["decisions"][0]["remaining"]), (200, 1))
        self.assertEqual(self.get(server)[0], 200)
        self.assertEqual(self.get(server)[0], 429)
        self.assertEqual(server.check(client="ann")[0], 429)
        self.assertEqual(self.get(server, "bob")[0], 200)
        with server.connect() as connection:
            connection.sendall(encode("CL.THROTTLE", "key", "1", "1", "60"))
            self.assertEqual(Replies(connection).next()[0], 0)

    def test_each_address_speaks_its_own_protocols(self):
        server = self.start("--rule", "client: 3/hour")
        self.assertEqual(server.request("GET", "/v1/sidecar", port=server.port)[0], 404)
        self.assertEqual(self.get(server, path="/v1/rules")[0], 404, "nginx answers")
        self.assertIn("nginx", self.get(server, path="/v1/rules")[2])

    def test_the_admin_address_shows_and_changes_both(self):
        second = Nginx(self)
        with open(os.path.join(second.folder, "files", "second"), "w", encoding="utf-8") as file:
            file.write("2")
        server = self.start("--rule", "client: 3/hour")
        for _ in range(4):
            self.get(server)
        server.check(client="bob")
        ask = lambda method, path, body=None: server.request(method, path, body, port=server.admin_port)
        self.assertEqual(len(json.loads(ask("GET", "/v1/rules")[2])["rules"]), 1)
        state = json.loads(ask("GET", "/v1/sidecar")[2])
        self.assertEqual((state["mode"], state["upstream"]), ("enforce", f"http://127.0.0.1:{self.nginx.port}"))
        self.assertEqual(server.metric('headgate_proxy_requests_total{outcome="answered"}'), 3)
        self.assertEqual(server.metric('headgate_auth_requests_total{outcome="denied"}'), 1)
        # One for the check, and five for the admin address, this one included.
        self.assertEqual(server.metric('headgate_sessions_total{protocol="http"}'), 6, "without those of the proxy")
        changed = ask("PATCH", "/v1/sidecar", json.dumps({"upstream": f"http://127.0.0.1:{second.port}"}))
        self.assertEqual(changed[0], 200, changed)
        until(lambda: self.get(server, "carol", "/second")[0] == 200, 10, "the second upstream answers")
        self.assertEqual(ask("PUT", "/v1/passthrough", "{}")[0], 200)
        self.assertEqual((self.get(server, "ann", "/second")[0], server.check(client="ann")[0]), (200, 200))

    def test_both_follow_the_rules_and_each_has_its_mappings(self):
        rules = self.write("rules.yaml", RULE.format(requests=1))
        files = ("--rules", rules, "--mappings", self.write("proxy.yaml", MAPPINGS), "--auth", self.write("auth.yaml", AUTH))
        server = self.start(*files)
        auth = lambda user: server.request("GET", "/auth", headers={"X-User": user})[0]
        self.assertEqual((self.get(server)[0], auth("ann")), (200, 429))
        self.assertEqual((auth("bob"), self.get(server, "bob")[0]), (200, 429))
        self.assertEqual(server.metric('headgate_auth_requests_total{outcome="denied"}'), 2, "one of each")
        self.assertEqual(self.get(server, path="/free/x")[0], 404, "no rule is asked, and nginx has no such file")
        self.write("rules.yaml", RULE.format(requests=2))
        until(lambda: self.get(server)[0] == 200, 10, "the new limit is in force for the proxy")
        self.assertEqual(auth("bob"), 200)
        self.write("proxy.yaml", MAPPINGS.replace("/free/*", "/other/*"))
        until(lambda: server.metric('headgate_mapping_reloads_total{result="loaded"}') >= 3, 10, "the mappings are loaded")
        self.assertEqual(self.get(server, path="/free/x")[0], 429)

    def test_the_pool_is_of_the_proxy_alone(self):
        server = self.start("--cycle", "1h", capacity=2)
        self.assertEqual([self.get(server)[0] for _ in range(3)], [200, 200, 429])
        self.assertEqual([server.check(client="ann")[0] for _ in range(3)], [200] * 3)

    def test_passthrough_of_the_process_refuses_nobody_in_the_pool_either(self):
        server = self.start("--cycle", "1h", "--rule", "client: 100/hour", capacity=2)
        ask = lambda method, path, body=None: server.request(method, path, body, port=server.admin_port)
        mode = lambda: json.loads(ask("GET", "/v1/sidecar")[2])["mode"]
        self.assertEqual([self.get(server)[0] for _ in range(3)], [200, 200, 429])
        self.assertEqual(ask("PUT", "/v1/passthrough", "{}")[0], 200)
        self.assertEqual(mode(), "passthrough")
        self.assertEqual([self.get(server)[0] for _ in range(3)], [200] * 3)
        # The mode of the pool alone may be set meanwhile, and counts afterwards.
        self.assertEqual(ask("PATCH", "/v1/sidecar", json.dumps({"mode": "enforce"}))[0], 200)
        self.assertEqual(self.get(server)[0], 200)
        self.assertEqual(ask("DELETE", "/v1/passthrough")[0], 200)
        self.assertEqual((mode(), self.get(server)[0]), ("enforce", 429))
        self.assertEqual(ask("PATCH", "/v1/sidecar", json.dumps({"mode": "passthrough"}))[0], 200)
        self.assertEqual(self.get(server)[0], 200)

    def test_an_address_that_the_process_uses_itself_is_named(self):
        proxy = ("--upstream", "http://127.0.0.1:9", "--capacity", "40")
        for args, says in (
            (("--listen-proxy", ":8080"), "--listen-proxy: ':8080' is taken by listen (127.0.0.1:8080)"),
            (("--listen-proxy", "localhost:9001", "--admin-listen", "127.0.0.1:9001"), "is taken by admin_listen (127.0.0.1:9001)"),
            (("--listen", ":9001", "--listen-proxy", "127.0.0.1:9001"), "is taken by listen ("),
        ):
            refused = run(BINARY, "serve", *args, *proxy)
            self.assertEqual(refused.returncode, 2, args)
            self.assertIn(says, refused.stderr)
            self.assertIn("a port of its own", refused.stderr)

    def test_a_server_and_a_sidecar_share_the_buckets_of_a_store(self):
        require_redis()
        store = ("--store", f"redis://127.0.0.1:{self.enterContext(RedisServer()).port}", "--sharing", "exact", *PATIENT)
        server = self.start("--rule", "client: 3/hour", *store)
        sidecar = self.enterContext(Sidecar(self.nginx.port, args=("--rule", "client: 3/hour", *store)))
        until(lambda: server.check(client="x")[0] == 200 and "store.connected" in sidecar.errors(), 10, "the store is used")
        ask = lambda: sidecar.request("GET", "/small", headers={"X-Client-Id": "ann"})[0]
        self.assertEqual((self.get(server)[0], ask(), server.check(client="ann")[0]), (200, 200, 200))
        self.assertEqual((self.get(server)[0], ask(), server.check(client="ann")[0]), (429, 429, 429))

    def test_a_stop_lets_proxied_requests_end_and_writes_the_snapshot(self):
        asked, go = threading.Event(), threading.Event()

        def answer(connection, _):
            asked.set()
            go.wait(20)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True

        snapshot = os.path.join(self.folder, "buckets.snapshot")
        server = self.start("--rule", "client: 3/hour", "--snapshot", snapshot, upstream=Upstream(self, answer).port)
        got = []
        request = threading.Thread(target=lambda: got.append(self.get(server)[::2]))
        request.start()
        self.assertTrue(asked.wait(20))
        server.process.terminate()
        until(lambda: "server.drain_began" in server.errors(), 10, "it drains")
        go.set()
        request.join(20)
        self.assertEqual(got, [(200, "ok")])
        self.assertEqual(server.stop(), 0, server.errors())
        again = self.start("--rule", "client: 3/hour", "--snapshot", snapshot)
        self.assertEqual(again.check(client="ann")[2]["decisions"][0]["remaining"], 1)

    def test_settings_come_from_the_one_table(self):
        config = self.write("headgate.yaml", f"listen_proxy: 127.0.0.1:0\nupstream: http://127.0.0.1:{self.nginx.port}\ncapacity: 40\n")
        printed = run(BINARY, "serve", "--config", config, "--print-config", env={"HEADGATE_CYCLE": "3s"}).stdout
        self.assertRegex(printed, r"\ncapacity: \"?40\"? +# .*headgate.yaml:3:")
        self.assertRegex(printed, r"\ncycle: 3s +# HEADGATE_CYCLE")
        for args, says in (
            (("--listen-proxy", "127.0.0.1:0"), ("--capacity is not given", "--upstream: no upstream is given")),
            (("--capacity", "40"), ("there is no address of a proxy",)),
            (("--listen-proxy", "nowhere", "--capacity", "40"), ("--listen-proxy: ",)),
            (("--listen-proxy", "127.0.0.1:0?fields=draft"), ("--listen-proxy \"127.0.0.1:0?fields=draft\": an address has no fields",)),
            (("--listen-proxy", "127.0.0.1:0", "--mappings", "x.yaml"), ("--mappings without rules",)),
            (("--handover", "x"), ("unknown argument '--handover'",)),
        ):
            refused = run(BINARY, "serve", *args)
            self.assertEqual(refused.returncode, 2, args)
            for text in says:
                self.assertIn(text, refused.stderr)


if __name__ == "__main__":
    unittest.main()
