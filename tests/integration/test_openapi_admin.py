"""Drives the admin address by its own description: rule files, and documents in ZooKeeper. Every operation with
valid and invalid bodies, every status that is described, and every answer compared with its schema. Also the
admin address of a sidecar."""

import fcntl
import json
import os
import tempfile
import unittest
from urllib.parse import quote

from described import Described, described_anywhere
from harness import BINARY, Headgate, Sidecar, free_port, run, until
from zookeeper import ZooKeeperServer

RULES = """domain: shop
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: path_a   # the same requests as path=a
    rate_limit: {unit: day, requests_per_unit: 10}
"""
RULE = "rate_limit: {unit: day, requests_per_unit: 20}\n"
BAD_RULE = "rate_limit: {unit: fortnight, requests_per_unit: 20}\n"
ROLLOUT = {"percent": 10, "rate_limit": {"unit": "day", "requests_per_unit": 5}}
ANY = {"If-Match": "*"}
NEW = {"If-None-Match": "*"}

DOCUMENT, LIMIT, RULE_PATH = "/v1/documents/{name}", "/v1/limits/{key}", "/v1/rules/{domain}/{rule}"
ROLLOUT_PATH, PROMOTE = "/v1/rollouts/{domain}/{rule}", "/v1/promote/{domain}/{rule}"


# Only ZooKeeper holds limits of keys, forgets whole directories, and does not answer.
WITH_ZOOKEEPER = {
    ("GET", LIMIT, "200"),
    *(("PUT", LIMIT, status) for status in ("200", "201", "412", "422", "428")),
    *(("DELETE", LIMIT, status) for status in ("200", "409", "412", "428")),
    ("PUT", DOCUMENT, "404"),
    ("POST", "/v1/confirm", "200"),
    *((method, DOCUMENT, "504") for method in ("GET", "PUT", "DELETE")),
    *((method, LIMIT, "504") for method in ("GET", "PUT", "DELETE")),
    *((method, RULE_PATH, "504") for method in ("GET", "PUT", "DELETE")),
    *((method, ROLLOUT_PATH, "504") for method in ("PUT", "DELETE")),
    *(("POST", path, "504") for path in (PROMOTE, "/v1/rollback", "/v1/confirm")),
    ("GET", "/v1/history", "504"),
}
# Somebody else removes the node between two steps; the thread that follows the rules is busy for seconds.
RACES = {("DELETE", DOCUMENT, "404"), ("GET", "/v1/documents", "504")}


def yaml(fields):
    return {**fields, "Content-Type": "application/yaml"}


def named(template, *parts):
    """The path of the operation, with these parts behind its prefix."""
    return template.split("{")[0] + "/".join(quote(part, safe="=/" if "=" in part else "") for part in parts)


class AdminTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.seen = set()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def serve(self, *args):
        self.server = self.enterContext(Headgate(*args, admin="127.0.0.1:0"))
        self.address = Described(self, self.server.admin_port, self.seen)
        self.ask, self.send = self.address.ask, self.address.send

    def etag(self, path):
        return {"If-Match": self.send("GET", path)[1]["etag"]}

    # (method, template, path, body) of a change that would be one, wherever the rules come from.
    def changes(self, document):
        return (
            ("PUT", DOCUMENT, named(DOCUMENT, document), RULES.replace("10", "30")),
            ("DELETE", DOCUMENT, named(DOCUMENT, document), None),
            *self.changes_of_rules(),
        )

    def changes_of_rules(self):
        return (
            ("PUT", RULE_PATH, named(RULE_PATH, "shop", "user"), RULE),
            ("DELETE", RULE_PATH, named(RULE_PATH, "shop", "user"), None),
            ("PUT", ROLLOUT_PATH, named(ROLLOUT_PATH, "shop", "user"), json.dumps(ROLLOUT)),
            ("DELETE", ROLLOUT_PATH, named(ROLLOUT_PATH, "shop", "user"), None),
            ("POST", PROMOTE, named(PROMOTE, "shop", "user"), "{}"),
        )


class AdminOfFiles(AdminTest):
    def setUp(self):
        super().setUp()
        self.directory = os.path.join(self.folder, "rules.d")
        os.mkdir(self.directory)
        self.file = self.write("rules.d/shop.yaml", RULES)
        self.other = os.path.join(self.directory, "more.yaml")
        self.path, self.other_path = named(DOCUMENT, self.file), named(DOCUMENT, self.other)
        self.audit = ("--audit-log", os.path.join(self.folder, "audit.log"))

    def start(self, *more):
        self.serve("--rules", self.directory, *more)

    def test_the_document_describes_what_the_address_serves_and_is_well_formed(self):
        self.start(*self.audit)
        self.address.assert_is_well_formed()
        self.address.assert_describes_exactly_what_it_serves()
        self.assertNotIn("/v1/check", self.address.api["paths"])

    def test_every_operation_is_of_some_address(self):
        self.start("--auth-header", "X-API-Key")
        sidecar = self.enterContext(Sidecar(1))
        served = set()
        for port in (self.server.port, self.server.admin_port, sidecar.admin_port):
            served |= {(method, path) for method, path, _ in Described(self, port, set()).operations}
        self.assertEqual(served, described_anywhere())

    def test_bodies_are_taken_if_the_description_allows_them(self):
        self.start(*self.audit)
        rule, rollout = named(RULE_PATH, "shop", "user"), named(ROLLOUT_PATH, "shop", "user")
        for body in (ROLLOUT, {"shadow": True, "rate_limits": [{"unit": "day", "requests_per_unit": 3}]}, {"percent": 0.5}):
            self.address.body_schema("PUT", ROLLOUT_PATH).validate(body)
            self.ask("PUT", ROLLOUT_PATH, path=rollout, body=body, headers=ANY, expect=200)
        for body in ({}, [], {"percent": 0}, {"percent": 101}, {"percent": "many"}, {"shadow": True, "percent": 5, "rate_limit": {}}, {**ROLLOUT, "surprise": 1}):
            self.assertFalse(self.address.body_schema("PUT", ROLLOUT_PATH).is_valid(body), body)
            self.ask("PUT", ROLLOUT_PATH, path=rollout, body=body, headers=ANY, expect=422)
        for template, path, valid in (
            (RULE_PATH, rule, {"rate_limit": {"unit": "hour", "requests_per_unit": 3}}),
            (DOCUMENT, self.path, {"domain": "shop", "descriptors": [{"key": "user"}]}),
        ):
            for kind, body, status in (
                ("application/json", valid, 200),
                ("text/yaml", json.dumps(valid), 200),
                ("text/plain", json.dumps(valid), 200),
                ("application/json", ["no mapping"], 422),
                ("application/yaml", "[", 422),
            ):
                schema = self.address.body_schema("PUT", template, kind)
                self.assertEqual(schema.is_valid(body), status == 200 or isinstance(body, str), body)
                self.ask("PUT", template, path=path + "?dry_run=true", body=body, headers={**ANY, "Content-Type": kind}, expect=status)
        for body in ({"document": 5}, {"change": "x"}, {}, [], {"document": self.file, "surprise": ""}):
            self.assertFalse(self.address.body_schema("POST", "/v1/rollback").is_valid(body), body)
            self.ask("POST", "/v1/rollback", body=body, expect=400)
        for body in ({"document": self.file}, {"document": self.file, "expected_version": "*"}):
            self.address.body_schema("POST", "/v1/rollback").validate(body)
            self.ask("POST", "/v1/rollback", body=body, expect=200)

    def test_every_status_that_is_described_occurs(self):
        password = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        users = self.write("users", f"ann admin {password}\neve check {password}\nbob admin {password}\n")
        self.start(*self.audit, "--users-file", users)
        described = self.address.described()
        ann, eve, bob = ({"Authorization": f"Bearer {name}:apple"} for name in ("ann", "eve", "bob"))
        asked = (
            ("GET", "/v1/documents", None, None),
            ("GET", DOCUMENT, self.path, None),
            ("GET", LIMIT, named(LIMIT, "k"), None),
            ("PUT", LIMIT, named(LIMIT, "k"), "{}"),
            ("DELETE", LIMIT, named(LIMIT, "k"), None),
            ("GET", RULE_PATH, named(RULE_PATH, "shop", "user"), None),
            *self.changes(self.file),
            ("GET", "/v1/history", None, None),
            ("POST", "/v1/rollback", None, {"document": self.file}),
            ("POST", "/v1/confirm", None, {}),
            ("GET", "/v1/passthrough", None, None),
            ("PUT", "/v1/passthrough", None, None),
            ("DELETE", "/v1/passthrough", None, None),
            ("GET", "/v1/rules", None, None),
            ("GET", "/metrics", None, None),
            ("GET", "/v1/metrics", None, None),
            ("GET", "/v1/top", None, None),
        )
        for method, template, path, body in asked:
            fields = {} if method == "GET" else ANY
            ask = lambda headers, **more: self.ask(method, template, **{"path": path, "body": body, "headers": headers, **more})
            ask(fields, expect=401)
            ask({**eve, **fields}, expect=403)
            ask({**ann, **fields, "Origin": "http://evil.example"}, expect=403)
            if method in ("PUT", "POST") and template != "/v1/passthrough":
                ask({**ann, **fields, "Content-Type": "image/png"}, expect=415)
            if template == "/v1/passthrough":
                ask({**ann, **fields}, expect=200)
            until(lambda: self.send("GET", "/metrics", headers={"Authorization": "Bearer bob:guess"})[0] == 429, 90, "bob is limited")
            ask({**bob, **fields}, expect=429)
        for path in ("/", "/healthz", "/readyz", "/openapi.json"):
            self.ask("GET", path, expect=200)

        self.start(*self.audit, "--request-timeout", "1s")
        self.address.drive_unfinished_requests()
        self.start(*self.audit)
        self.address.drive_broken_requests()
        self.expect_statuses_of_reading()
        self.expect_statuses_of_documents()
        self.expect_statuses_of_rules()
        self.expect_statuses_of_broken_rules()
        self.expect_statuses_without_an_audit_log()
        self.expect_statuses_of_trouble()
        self.assertEqual(described - self.seen, WITH_ZOOKEEPER | RACES)

    def expect_statuses_of_reading(self):
        self.ask("GET", "/v1/rules", expect=200)
        self.ask("GET", "/v1/rules", path="/v1/rules?from=x", expect=400)
        self.ask("GET", "/metrics", expect=200)
        self.ask("GET", "/v1/metrics", expect=200)
        self.ask("GET", "/v1/top", expect=200)
        self.ask("GET", "/v1/top", path="/v1/top?by=denials&domain=shop&rule=user&count=3", expect=200)
        self.ask("GET", "/v1/top", path="/v1/top?by=name", expect=400)
        self.ask("GET", "/v1/top", path="/v1/top?domain=shop&rule=nobody", expect=404)
        self.ask("GET", "/v1/documents", expect=200)
        self.ask("GET", DOCUMENT, path=self.path, expect=200)
        self.ask("GET", DOCUMENT, path=named(DOCUMENT, "/etc/passwd"), expect=404)
        self.ask("GET", DOCUMENT, path="/v1/documents/%", expect=400)
        self.ask("GET", RULE_PATH, path=named(RULE_PATH, "shop", "user"), expect=200)
        self.ask("GET", RULE_PATH, path=named(RULE_PATH, "shop", "nobody"), expect=404)
        self.ask("GET", RULE_PATH, path=named(RULE_PATH, "shop", "path=a"), expect=409)
        self.ask("GET", RULE_PATH, path="/v1/rules/shop/", expect=400)
        self.ask("GET", "/v1/history", expect=200)
        self.ask("GET", "/v1/history", path="/v1/history?count=x", expect=400)
        self.ask("GET", "/v1/history", path="/v1/history?key=k", expect=404)
        for method, body in (("GET", None), ("PUT", "{}"), ("DELETE", None)):
            self.ask(method, LIMIT, path=named(LIMIT, "k"), body=body, headers=ANY, expect=404)
        self.ask("POST", "/v1/confirm", path="/v1/confirm?dry_run=true", body={}, expect=400)
        self.ask("POST", "/v1/confirm", body={}, expect=409)

    def expect_statuses_of_documents(self):
        before = self.etag(self.path)
        self.ask("PUT", DOCUMENT, path=self.path, body=RULES.replace("10", "11"), headers=yaml(before), expect=200)
        self.ask("PUT", DOCUMENT, path=self.path, body=RULES, headers=yaml(before), expect=412)
        self.ask("PUT", DOCUMENT, path=self.path, body="domain: []\n", headers=yaml(ANY), expect=422)
        self.ask("PUT", DOCUMENT, path=self.path, body=RULES, headers=yaml({}), expect=428)
        self.ask("PUT", DOCUMENT, path=named(DOCUMENT, "/etc/passwd"), body=RULES, headers=yaml(NEW), expect=403)
        self.ask("DELETE", DOCUMENT, path=self.path, headers=ANY, expect=409)
        self.ask("PUT", DOCUMENT, path=self.other_path, body="domain: more\n", headers=yaml(NEW), expect=201)
        self.ask("PUT", DOCUMENT, path=self.other_path + "?dry_run=true", body="domain: more\n", headers=yaml(NEW), expect=412)
        self.ask("DELETE", DOCUMENT, path=self.other_path, headers=before, expect=412)
        self.ask("DELETE", DOCUMENT, path=self.other_path, expect=428)
        self.ask("DELETE", DOCUMENT, path=named(DOCUMENT, "/etc/passwd"), headers=ANY, expect=403)
        self.ask("DELETE", DOCUMENT, path=self.other_path + "?dry_run=true", headers=ANY, expect=200)
        self.ask("DELETE", DOCUMENT, path=self.other_path, headers=ANY, expect=200)
        history = json.loads(self.ask("GET", "/v1/history", path="/v1/history?document=" + quote(self.other, safe=""), expect=200))
        self.assertEqual([change["action"] for change in history["changes"]], ["delete", "put"])
        back = {"document": self.other, "change": history["changes"][1]["id"]}
        self.ask("POST", "/v1/rollback", path="/v1/rollback?dry_run=true", body=back, expect=200)
        self.ask("POST", "/v1/rollback", body={**back, "change": "0"}, expect=404)
        self.ask("POST", "/v1/rollback", body={"document": self.file, "expected_version": "0"}, expect=412)
        # By hand: somebody else has this domain now.
        self.write("rules.d/same.yaml", "domain: more\n")
        self.until_known("same.yaml")
        self.ask("POST", "/v1/rollback", body=back, expect=422)

    def until_known(self, *names):
        """Changes by hand are seen a moment later."""
        known = lambda: {os.path.basename(one["name"]) for one in json.loads(self.send("GET", "/v1/documents")[2])["documents"]}
        until(lambda: set(names) <= known(), 10, f"{names} are known")

    def expect_statuses_of_rules(self):
        user, nobody, same = (named(RULE_PATH, "shop", name) for name in ("user", "nobody", "path=a"))
        self.ask("PUT", RULE_PATH, path=user, body=RULE, headers=yaml(ANY), expect=200)
        self.ask("PUT", RULE_PATH, path=nobody, body=RULE, headers=yaml(NEW), expect=201)
        self.ask("PUT", RULE_PATH, path=user, body=BAD_RULE, headers=yaml(ANY), expect=422)
        self.ask("PUT", RULE_PATH, path=same, body=RULE, headers=yaml(NEW), expect=409)
        self.ask("DELETE", RULE_PATH, path=nobody, headers=ANY, expect=200)
        for template, method, body in (
            (RULE_PATH, "PUT", RULE),
            (RULE_PATH, "DELETE", None),
            (ROLLOUT_PATH, "PUT", json.dumps(ROLLOUT)),
            (ROLLOUT_PATH, "DELETE", None),
            (PROMOTE, "POST", "{}"),
        ):
            ask = lambda path, headers, expect: self.ask(method, template, path=path, body=body, headers=headers, expect=expect)
            ask(named(template, "nowhere", "user"), ANY, 404)
            ask(named(template, "shop", "user"), {"If-Match": '"0"'}, 412)
            ask(named(template, "shop", "user"), {}, 428)
            ask(named(template, "shop", "user"), {"If-Match": "0"}, 400)
            ask(named(template, "shop", "user") + "?surprise=1", ANY, 400)
        user_rollout, user_promote = named(ROLLOUT_PATH, "shop", "user"), named(PROMOTE, "shop", "user")
        self.ask("PUT", ROLLOUT_PATH, path=user_rollout, body=ROLLOUT, headers=ANY, expect=200)
        self.ask("PUT", ROLLOUT_PATH, path=user_rollout, body={"percent": 0}, headers=ANY, expect=422)
        self.ask("DELETE", ROLLOUT_PATH, path=user_rollout, headers=ANY, expect=200)
        self.ask("PUT", ROLLOUT_PATH, path=user_rollout, body=ROLLOUT, headers=ANY, expect=200)
        self.ask("POST", PROMOTE, path=user_promote, body="{}", headers=ANY, expect=200)

    def expect_statuses_of_broken_rules(self):
        """Rule files that were edited by hand meanwhile."""
        broken = """domain: shop
x: &limit {unit: day, requests_per_unit: 7}
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10}
    rollout: {percent: 1, rate_limit: {unit: day, requests_per_unit: 9}}
  - key: other
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: alias
    rate_limit: *limit
    rollout: {percent: 1, rate_limit: *limit}
  - key: bad
    rate_limit: {unit: fortnight, requests_per_unit: 10}
"""
        for name in ("b.yaml", "c.yaml", "same.yaml"):
            self.write("rules.d/" + name, "domain: one\n")
        self.write("rules.d/shop.yaml", broken)
        self.until_known("b.yaml", "c.yaml")
        self.ask("DELETE", RULE_PATH, path=named(RULE_PATH, "shop", "other"), headers=ANY, expect=422)
        self.ask("DELETE", ROLLOUT_PATH, path=named(ROLLOUT_PATH, "shop", "user"), headers=ANY, expect=422)
        self.ask("POST", PROMOTE, path=named(PROMOTE, "shop", "user"), body="{}", headers=ANY, expect=422)
        self.ask("DELETE", DOCUMENT, path=named(DOCUMENT, os.path.join(self.directory, "b.yaml")), headers=ANY, expect=422)
        os.mkfifo(os.path.join(self.directory, "pipe.yaml"))
        self.ask("GET", DOCUMENT, path=named(DOCUMENT, os.path.join(self.directory, "pipe.yaml")), expect=422)

    def expect_statuses_without_an_audit_log(self):
        for name in ("b.yaml", "c.yaml", "same.yaml", "pipe.yaml"):
            os.remove(os.path.join(self.directory, name))
        rollout = f"{RULES}  - key: rolled\n    rate_limit: {{unit: day, requests_per_unit: 10}}\n    rollout: {json.dumps({**ROLLOUT, 'percent': 1})}\n"
        self.write("rules.d/shop.yaml", rollout)
        self.write("rules.d/more.yaml", "domain: more\n")
        self.start()
        for method, template, path, body in self.changes(self.other):
            self.ask(method, template, path=path.replace("/user", "/rolled"), body="domain: more2\n" if template == DOCUMENT and body else body, headers=ANY, expect=409)
        self.ask("GET", "/v1/history", expect=409)
        self.ask("POST", "/v1/rollback", body={"document": self.file}, expect=409)

    def expect_statuses_of_trouble(self):
        """Another process holds the audit log, the rules come from elsewhere, and all connections are taken."""
        self.start(*self.audit)
        with open(self.audit[1], "rb") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            self.ask("PUT", RULE_PATH, path=named(RULE_PATH, "shop", "user"), body=BAD_RULE.replace("fortnight", "week"), headers=yaml(ANY), expect=503)
        elsewhere = self.write("elsewhere.yaml", "domain: elsewhere\n")
        self.serve("--rules", elsewhere, *self.audit)
        self.ask("POST", "/v1/rollback", body={"document": self.file}, expect=403)
        self.serve("--rules", elsewhere, *self.audit, "--max-admin-connections", "2")
        self.address.drive_full_house(2)


class AdminOfZooKeeper(AdminTest):
    def setUp(self):
        super().setUp()
        self.zookeeper = self.enterContext(ZooKeeperServer())
        self.operator = self.zookeeper.client()
        self.addCleanup(self.operator.close)
        self.addCleanup(self.operator.stop)
        for path in ("config", "rules"):
            self.operator.ensure_path("/rate-limiter/" + path)
        self.operator.create("/rate-limiter/rules/shop", RULES.encode())
        self.start()

    def start(self, *more):
        self.serve("--watch", self.zookeeper.url(), "--watch-session-timeout", "4s", *more)
        until(lambda: self.send("GET", "/readyz")[0] == 200, 10, "it is ready")

    def test_limits_are_taken_if_the_description_allows_them(self):
        path = named(LIMIT, "gold/1")
        schema = self.address.body_schema("PUT", LIMIT)
        for body in (
            {"Limit": 10, "WindowSeconds": 20},
            {"Limit": 0, "Window": "hour", "Algorithm": "token_bucket", "Burst": 5},
            {"Limit": 100, "Window": "minute", "Algorithm": "leaky_bucket", "Queue": True, "Burst": 0, "MaxDelay": "1s"},
            {"Limits": [{"Limit": 10, "WindowSeconds": 1}, {"Limit": 1000, "Window": "hour"}], "Name": "gold"},
            {"Limit": 20, "Algorithm": "concurrency", "Ttl": "60s"},
            {"Unlimited": True, "ShadowMode": True},
            {"Limit": 1, "WindowSeconds": 1, "Align": "epoch", "CountDenied": True, "Sharing": "exact", "OnStoreFailure": "local", "FallbackShare": 0.5},
        ):
            schema.validate(body)
            self.ask("PUT", LIMIT, path=path + "?dry_run=true", body=body, headers=NEW, expect=200)
        for body in (
            {},
            [],
            {"Limit": -1, "WindowSeconds": 20},
            {"Limit": 1.5, "WindowSeconds": 20},
            {"Limit": 1, "WindowSeconds": 0},
            {"Limit": 1, "WindowSeconds": 1, "Algorithm": "magic"},
            {"Limit": 1, "WindowSeconds": 1, "FallbackShare": 0},
            {"Limits": []},
            {"Limit": 1, "WindowSeconds": 1, "Surprise": 1},
        ):
            self.assertFalse(schema.is_valid(body), body)
            self.ask("PUT", LIMIT, path=path, body=body, headers=NEW, expect=422)

    def test_every_status_that_files_do_not_have_occurs(self):
        self.expect_statuses_of_limits()
        self.expect_statuses_of_confirmations()
        self.expect_silence()
        self.assertEqual(WITH_ZOOKEEPER - self.seen, set())

    def expect_statuses_of_limits(self):
        gold = named(LIMIT, "gold")
        body = {"Limit": 10, "WindowSeconds": 20}
        self.ask("PUT", LIMIT, path=gold, body=body, headers=NEW, expect=201)
        self.ask("PUT", LIMIT, path=gold, body=body, headers=NEW, expect=412)
        self.ask("PUT", LIMIT, path=gold, body={**body, "Limit": 11}, headers=ANY, expect=200)
        self.ask("PUT", LIMIT, path=gold, body={"Limit": -1}, headers=ANY, expect=422)
        self.ask("PUT", LIMIT, path=gold, body=body, expect=428)
        self.address.component("KeyLimit").validate(json.loads(self.ask("GET", LIMIT, path=gold, expect=200)))
        self.ask("GET", DOCUMENT, path=named(DOCUMENT, "/rate-limiter/config/gold"), expect=200)
        self.ask("GET", "/v1/documents", expect=200)
        self.ask("DELETE", LIMIT, path=gold, headers={"If-Match": '"0"'}, expect=412)
        self.ask("DELETE", LIMIT, path=gold, expect=428)
        # A node with a node below it cannot be removed.
        self.operator.create("/rate-limiter/config/gold/below")
        self.ask("DELETE", LIMIT, path=gold, headers=ANY, expect=409)
        self.operator.delete("/rate-limiter/config/gold/below")
        self.ask("POST", "/v1/rollback", body={"key": "gold"}, expect=200)
        self.ask("DELETE", LIMIT, path=gold, headers=ANY, expect=200)
        self.ask("GET", LIMIT, path=gold, expect=404)
        # The node that would hold it is missing.
        self.operator.delete("/rate-limiter/config")
        for template, name in ((LIMIT, "gold"), (DOCUMENT, "/rate-limiter/config/gold")):
            self.ask("PUT", template, path=named(template, name), body=body, headers=NEW, expect=404)
        self.operator.create("/rate-limiter/config")

    def expect_statuses_of_confirmations(self):
        """Leaves an instance that waits for one, and gives up sooner than its session."""
        first = self.address
        self.start("--request-timeout", "2s")
        self.operator.delete("/rate-limiter/rules/shop")
        self.operator.delete("/rate-limiter/rules")
        for address in (first, self.address):
            until(lambda one=address: "headgate_watch_kept_documents 1" in one.send("GET", "/metrics")[2], 10, "the rules are kept")
        # A busy machine can take too long to note it; then nothing is confirmed.
        until(lambda: '"confirmed":true' in first.ask("POST", "/v1/confirm", body={}), 20, "it is confirmed")

    def expect_silence(self):
        document = "/rate-limiter/rules/shop"
        self.zookeeper.pause()
        self.addCleanup(self.zookeeper.resume)
        waiting = []
        for method, template, path, body in (
            ("GET", DOCUMENT, named(DOCUMENT, document), ""),
            ("GET", LIMIT, named(LIMIT, "k"), ""),
            ("PUT", LIMIT, named(LIMIT, "k"), "{}"),
            ("DELETE", LIMIT, named(LIMIT, "k"), ""),
            ("GET", RULE_PATH, named(RULE_PATH, "shop", "user"), ""),
            *self.changes(document),
            ("GET", "/v1/history", "/v1/history", ""),
            ("POST", "/v1/rollback", "/v1/rollback", json.dumps({"document": document})),
            ("POST", "/v1/confirm", "/v1/confirm", "{}"),
        ):
            waiting.append((self.address.begin_whole(method, path, body or "", ANY), method, template))
        for connection, method, template in waiting:
            self.assertEqual(self.address.finish(connection, method, template), "504", f"{method} {template}")


class AdminOfSidecar(AdminTest):
    def start(self, *args):
        self.server = self.enterContext(Sidecar(1, args=args))
        self.address = Described(self, self.server.admin_port, self.seen)
        self.ask, self.send = self.address.ask, self.address.send

    def test_the_document_describes_what_the_address_serves_and_is_well_formed(self):
        for more in ((), ("--rule", "user: 10/minute"), ("--watch", f"zk://127.0.0.1:{free_port()}/rules")):
            self.start(*more)
            self.address.assert_is_well_formed()
            self.address.assert_describes_exactly_what_it_serves()
            for path in ("/v1/rules", DOCUMENT, RULE_PATH, "/v1/confirm", "/v1/passthrough"):
                self.assertEqual(path in self.address.api["paths"], bool(more), path)
            self.address.drive_broken_requests()

    def test_bodies_are_taken_if_the_description_allows_them(self):
        self.start()
        schema = self.address.body_schema("PATCH", "/v1/sidecar")
        for body in ({}, {"mode": "passthrough"}, {"mode": "enforce", "upstream": "http://127.0.0.1:2"}):
            schema.validate(body)
            self.ask("PATCH", "/v1/sidecar", body=body, expect=200)
        for body in ([], {"mode": "off"}, {"mode": 1}, {"upstream": ""}, {"capacity": 3}):
            self.assertFalse(schema.is_valid(body), body)
            self.ask("PATCH", "/v1/sidecar", body=body, expect=400)
        self.ask("PATCH", "/v1/sidecar", body={}, headers={"Content-Type": "text/plain"}, expect=415)
        for path in ("/v1/sidecar", "/metrics", "/v1/metrics", "/healthz", "/readyz", "/", "/openapi.json"):
            self.ask("GET", path, expect=200)


if __name__ == "__main__":
    unittest.main()
