"""Drives the address for decisions by its own description: every operation with valid and invalid bodies,
every status that is described, and every answer compared with its schema. test_openapi_admin.py does the same
with the admin address."""

import base64
import json
import os
import tempfile
import unittest

from described import METHODS, Described
from harness import BINARY, PATIENT, Headgate, RedisServer, require_redis, run, until, wait

RULES = """domain: default
descriptors:
- key: api_key
  rate_limit: {unit: minute, requests_per_unit: 5}
- key: line
  rate_limit: {unit: minute, requests_per_unit: 60, algorithm: leaky_bucket, queue: true, name: line}
- key: nothing
  rate_limit: {unlimited: true}
- key: month
  rate_limit: {unit: month, requests_per_unit: 3}
- key: pool
  rate_limit: {algorithm: concurrency, requests: 1, ttl: 60s}
"""

# One change each that makes a valid body invalid.
SPOILERS = (
    lambda body: body.update(surprise=1),
    lambda body: body.update(domain=""),
    lambda body: body.update(descriptors=[]),
    lambda body: body.pop("descriptors"),
    lambda body: body.update(cost=-1),
    lambda body: body.update(cost=2**63),
    lambda body: body.update(cost="1"),
    lambda body: body["descriptors"][0].update(entries=[]),
    lambda body: body["descriptors"][0].update(entries=33 * body["descriptors"][0]["entries"]),
    lambda body: body["descriptors"][0]["entries"][0].pop("value"),
    lambda body: body["descriptors"][0]["entries"][0].update(key=""),
    lambda body: body["descriptors"][0].update(limit={"requests_per_unit": 1, "unit": "fortnight"}),
    lambda body: body["descriptors"][0].update(limit={"unit": "day"}),
    lambda body: body.update(descriptors=65 * body["descriptors"]),
)


def body_of(key, value="v", **more):
    return {"descriptors": [{"entries": [{"key": key, "value": value}]}], **more}


class OpenApi(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(self.folder, "rules.yaml")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        self.seen = set()

    def serve(self, *more):
        self.server = self.enterContext(Headgate("--rules", self.rules, *more))
        self.address = Described(self, self.server.port, self.seen)
        self.ask, self.send = self.address.ask, self.address.send

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_the_document_describes_what_the_address_serves_and_is_well_formed(self):
        for more in ((), ("--auth-header", "X-API-Key")):
            self.serve(*more)
            self.address.assert_is_well_formed()
            self.address.assert_describes_exactly_what_it_serves()
            self.assertEqual("/auth" in self.address.api["paths"], bool(more))
            self.assertEqual(self.send("GET", "/auth")[0], 401 if more else 404)

    def test_the_server_takes_the_bodies_that_the_description_allows_and_no_others(self):
        self.serve()
        bodies = [
            body_of("api_key", "a", cost=0),
            body_of("nobody", "x", domain="default"),
            body_of("nobody", "x", domain="nowhere"),
            body_of("line"),
            body_of("nothing"),
            body_of("month"),
            {"descriptors": [{"entries": [{"key": "k", "value": ""}], "cost": 2, "limit": {"requests_per_unit": 3, "unit": unit}}]
             for unit in ("second",)},
            {"descriptors": 64 * [{"entries": 32 * [{"key": "k", "value": "v"}]}], "cost": 2**63 - 1},
        ]
        for body in bodies:
            self.address.component("Check").validate(body)
            for path in ("/v1/check", "/v1/peek"):
                self.assertIn(json.loads(self.ask("POST", path, body=body))["allowed"], (True, False))
            self.ask("POST", "/v1/checks", body={"checks": [body, body]}, expect=200)
        for spoil in SPOILERS:
            body = body_of("api_key")
            spoil(body)
            self.assertFalse(self.address.component("Check").is_valid(body), body)
            for path in ("/v1/check", "/v1/peek", "/v1/refund", "/v1/reset"):
                self.ask("POST", path, body=body, expect=400)
            self.ask("POST", "/v1/checks", body={"checks": [body_of("api_key"), body]}, expect=400)
            self.ask("POST", "/v1/reserve", body=body, expect=400)
        for more in ({"id": ""}, {"id": 129 * "x"}, {"expires_ms": 999}, {"expires_ms": 3600001}):
            body = body_of("api_key", **more)
            self.assertFalse(self.address.component("Reserve").is_valid(body), body)
            self.ask("POST", "/v1/reserve", body=body, expect=400)
        self.ask("POST", "/v1/reserve", body=body_of("api_key", "r", id="x", expires_ms=1000), expect=200)
        for body in ({}, {"reservation": "abcd"}, {"reservation": "abcd", "cost": 1, "costs": [1]}, {"reservation": "abcd", "costs": []}):
            self.assertFalse(self.address.component("Settle").is_valid(body), body)
            self.ask("POST", "/v1/settle", body=body, expect=400)
        for more in ({"id": ""}, {"ttl_ms": 999}, {"ttl_ms": 86400001}, {"expires_ms": 1000}):
            body = body_of("pool", **more)
            self.assertFalse(self.address.component("Acquire").is_valid(body), body)
            self.ask("POST", "/v1/acquire", body=body, expect=400)
        self.ask("POST", "/v1/acquire", body=body_of("pool", "r", id="x", ttl_ms=1000), expect=200)
        for body in (body_of("pool"), body_of("pool", id=""), body_of("pool", id="x", ttl_ms=1000)):
            self.assertFalse(self.address.component("Release").is_valid(body), body)
            self.ask("POST", "/v1/release", body=body, expect=400)
        for path in ("/v1/reserve", "/v1/acquire"):
            self.assertIn("hint", json.loads(self.ask("POST", path, body=body_of("k", domain="nowhere"), expect=200)))
        self.ask("POST", "/v1/checks", body={"checks": []}, expect=400)
        self.ask("POST", "/v1/checks", body={"checks": 1001 * [body_of("k")]}, expect=400)

    def test_every_status_that_is_described_occurs(self):
        password = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        users = self.write("users", f"ann admin {password}\nbob refund {password}\neve check {password}\n")

        def login(user, word="apple"):
            return {"Authorization": "Basic " + base64.b64encode(f"{user}:{word}".encode()).decode()}

        self.serve("--auth-header", "X-API-Key", "--request-timeout", "1s")
        described = self.address.described()
        self.address.drive_unfinished_requests()
        self.serve("--users-file", users, "--auth-header", "X-API-Key")
        self.address.drive_broken_requests()
        changing = ("/v1/check", "/v1/checks", "/v1/peek", "/v1/reserve", "/v1/acquire", "/v1/refund", "/v1/reset")
        ann = login("ann")
        for path in changing:
            body = body_of("api_key", path)
            wrap = (lambda check: {"checks": [check]}) if path == "/v1/checks" else (lambda check: check)
            self.ask("POST", path, body=wrap(body), headers=ann, expect=200)
            self.ask("POST", path, body="{", headers=ann, expect=400)
            self.ask("POST", path, body=wrap(body), expect=401)
            self.ask("POST", path, body=wrap(body), headers=login("eve" if path in ("/v1/refund", "/v1/reset") else "bob"), expect=403)
            self.ask("POST", path, body=wrap(body), headers={**ann, "Content-Encoding": "gzip"}, expect=415)
        for path in ("/v1/check", "/v1/peek", "/v1/reserve"):
            self.ask("POST", path, body=body_of("api_key", "b", cost=6), headers=ann, expect=429)
        reserved = json.loads(self.ask("POST", "/v1/reserve", body=body_of("api_key", "r"), headers=ann, expect=200))
        settlement = {"reservation": reserved["reservation"], "cost": 2}
        self.ask("POST", "/v1/settle", body=settlement, expect=401)
        self.ask("POST", "/v1/settle", body=settlement, headers=login("bob"), expect=403)
        self.ask("POST", "/v1/settle", body=settlement, headers={**ann, "Content-Encoding": "gzip"}, expect=415)
        self.ask("POST", "/v1/settle", body={**settlement, "cost": -1}, headers=ann, expect=400)
        self.ask("POST", "/v1/settle", body=settlement, headers=ann, expect=200)
        self.ask("POST", "/v1/settle", body=settlement, headers=ann, expect=409)
        held = json.loads(self.ask("POST", "/v1/acquire", body=body_of("pool", "p"), headers=ann, expect=200))
        self.assertEqual((held["in_flight"], held["limit"], held["expires_in_ms"]), (1, 1, 60000))
        self.ask("POST", "/v1/acquire", body=body_of("pool", "p"), headers=ann, expect=429)
        release = body_of("pool", "p", id=held["id"])
        self.ask("POST", "/v1/release", body=release, expect=401)
        self.ask("POST", "/v1/release", body=release, headers=login("bob"), expect=403)
        self.ask("POST", "/v1/release", body=release, headers={**ann, "Content-Encoding": "gzip"}, expect=415)
        self.ask("POST", "/v1/release", body=body_of("pool", "p"), headers=ann, expect=400)
        for was_held in (True, False):
            answer = json.loads(self.ask("POST", "/v1/release", body=release, headers=ann, expect=200))
            self.assertEqual(answer["released"], was_held)
        short = json.loads(self.ask("POST", "/v1/reserve", body=body_of("api_key", "s", expires_ms=1000), headers=ann, expect=200))
        named = body_of("api_key", "n", id="named", expires_ms=1000)
        first = json.loads(self.ask("POST", "/v1/reserve", body=named, headers=ann, expect=200))
        self.assertEqual(first["expires_in_ms"], 1000)
        again = json.loads(self.ask("POST", "/v1/reserve", body=named, headers=ann, expect=200))
        self.assertLess(again["expires_in_ms"], 1000)
        wait(1.1)
        self.ask("POST", "/v1/reserve", body=named, headers=ann, expect=410)
        self.ask("POST", "/v1/settle", body={"reservation": short["reservation"], "costs": [0]}, headers=ann, expect=410)
        for path in ("/v1/refund", "/v1/reset"):
            self.ask("POST", path, body=body_of("nobody"), headers=ann, expect=404)
        self.ask("POST", "/v1/refund", body=body_of("line"), headers=ann, expect=409)
        for path in ("/v1/rules", "/metrics"):
            self.ask("GET", path, headers=ann, expect=200)
            self.ask("GET", path, expect=401)
            self.ask("GET", path, headers=login("eve"), expect=403)
        self.ask("GET", "/v1/rules", path="/v1/rules?from=x", headers=ann, expect=400)
        for path in ("/", "/healthz", "/readyz", "/openapi.json"):
            self.ask("GET", path, expect=200)

        def guess():
            """Uses up the logins of bob that may fail, also one that has come back meanwhile."""
            until(lambda: self.send("GET", "/metrics", headers=login("bob", "guess"))[0] == 429, 20, "bob is limited")

        for path in (*changing, "/v1/settle", "/v1/release"):
            body = {"/v1/settle": settlement, "/v1/release": release}.get(path, body_of("api_key", "c"))
            guess()
            self.ask("POST", path, body={"checks": [body]} if path == "/v1/checks" else body, headers=login("bob"), expect=429)
        for path in ("/v1/rules", "/metrics"):
            guess()
            self.ask("GET", path, headers=login("bob"), expect=429)

        for method, path in ((method.upper(), path) for path in ("/auth", "/auth/a") for method in METHODS):
            template = "/auth" if path == "/auth" else "/auth/{path}"
            with_key = {"X-API-Key": method + path}
            for status in 5 * [200] + [429]:
                self.ask(method, template, path=path, headers=with_key, expect=status)
            self.ask(method, template, path=path, expect=401)
            self.ask(method, template, path=path, headers={"X-API-Key": "a\tb"}, expect=400)
        self.expect_statuses_of_mappings()
        self.expect_statuses_of_trouble()
        self.expect_a_full_house()

        self.assertEqual(described - self.seen, set())

    def expect_statuses_of_mappings(self):
        auth = self.write("auth.yaml", """trusted_proxies: [127.0.0.1]
original_request: request-line
mappings:
- descriptors: [{entries: [{key: nobody, header: X-API-Key}]}]
  require_rule: true
  status: {missing: 418}
""")
        self.serve("--auth", auth)
        for method, path in ((method.upper(), path) for path in ("/auth", "/auth/a") for method in METHODS):
            template = "/auth" if path == "/auth" else "/auth/{path}"
            self.ask(method, template, path=path, headers={"X-API-Key": "k"}, expect=403)
            self.ask(method, template, path=path, expect=418)

    def expect_a_full_house(self):
        self.serve("--auth-header", "X-API-Key", "--max-connections", "4", "--max-connections-per-address", "4")
        self.address.drive_full_house(4)

    def expect_statuses_of_trouble(self):
        """With a store that is away, and a server that goes down."""
        require_redis()
        redis = self.enterContext(RedisServer())
        rules = RULES.replace("requests_per_unit: 5}", "requests_per_unit: 5, on_store_failure: deny}")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(rules)
        self.serve("--store", f"redis://127.0.0.1:{redis.port}", *PATIENT, "--auth-header", "X-API-Key", "--drain-delay", "20s")
        self.ask("POST", "/v1/check", body=body_of("api_key"), expect=200)
        reserved = json.loads(self.ask("POST", "/v1/reserve", body=body_of("api_key", "r"), expect=200))
        redis.kill()
        self.ask("POST", "/v1/settle", body={"reservation": reserved["reservation"], "cost": 0}, expect=503)
        body = body_of("api_key", "new")
        for path in ("/v1/check", "/v1/peek", "/v1/reserve", "/v1/acquire", "/v1/refund", "/v1/reset"):
            self.ask("POST", path, body=body, expect=503)
        self.ask("POST", "/v1/release", body=body_of("pool", "p", id="x"), expect=503)
        self.ask("GET", "/auth/{path}", path="/auth/a", headers={"X-API-Key": "other"}, expect=503)
        self.ask("GET", "/auth", headers={"X-API-Key": "other"}, expect=503)
        results = json.loads(self.ask("POST", "/v1/checks", body={"checks": [body]}, expect=200))["results"]
        self.assertEqual(results[0]["status"], 503)
        self.server.process.terminate()
        until(lambda: self.send("GET", "/readyz")[0] == 503, 10, "it goes down")
        self.ask("GET", "/readyz", expect=503)


if __name__ == "__main__":
    unittest.main()
