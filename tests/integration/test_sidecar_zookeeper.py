"""A sidecar that follows rules in ZooKeeper."""

import os
import tempfile
import unittest

from harness import BINARY, Sidecar, run, until
from upstreams import Upstream
from zookeeper import ZooKeeperServer

RULE = b"""domain: default
descriptors:
  - key: client
    rate_limit: {requests_per_unit: %d, period: 1h, algorithm: fixed_window}
"""
MAPPINGS = """mappings:
- descriptors: [{entries: [{key: api_key, header: X-API-Key}]}]
"""


def answer(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    return True


class RulesInZooKeeper(unittest.TestCase):
    def setUp(self):
        self.zookeeper = self.enterContext(ZooKeeperServer())
        self.operator = self.zookeeper.client()
        self.addCleanup(self.operator.close)
        self.addCleanup(self.operator.stop)
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.upstream = Upstream(self, answer)

    def put(self, path, value):
        path = "/rate-limiter/" + path
        self.operator.ensure_path(path)
        self.operator.set(path, value)

    def start(self, *args):
        words = ("--watch", self.zookeeper.url(), "--watch-session-timeout", "1s", *args)
        return self.enterContext(Sidecar(self.upstream.port, args=words))

    @staticmethod
    def quota(sidecar, **headers):
        """The status of a request, and the quota of the limit that it met."""
        status, fields, _ = sidecar.request("GET", "/", headers=headers or {"X-Client-Id": "ann"})
        return status, fields.get("ratelimit-policy", "").split(";w=")[0]

    def test_replicas_follow_a_change_within_a_second(self):
        self.put("rules/edge", RULE % 300)
        replicas = [self.start(), self.start()]
        for replica in replicas:
            self.assertEqual(self.quota(replica), (200, '"client";q=300'))
        self.put("rules/edge", RULE % 500)
        for replica in replicas:
            until(lambda replica=replica: self.quota(replica) == (200, '"client";q=500'), 1, "the new limit is in force")
        self.put("rules/edge", b"domain: default\ndescriptors:\n  - key: client\n    rate_limt: {}\n")
        for replica in replicas:
            until(lambda replica=replica: "unknown key 'rate_limt'" in replica.errors(), 2, "the log names the problem")
            self.assertEqual(self.quota(replica), (200, '"client";q=500'))
            until(lambda replica=replica: replica.metric("headgate_watch_instances") == 2, 5, "both are seen")

    def test_a_limit_of_one_key_needs_a_mapping_to_its_descriptor(self):
        self.put("config/k1", b'{"Limit": 2, "WindowSeconds": 3600}')
        mappings = os.path.join(self.folder, "mappings.yaml")
        with open(mappings, "w", encoding="utf-8") as file:
            file.write(MAPPINGS)
        sidecar = self.start("--mappings", mappings)
        statuses = [self.quota(sidecar, **{"X-API-Key": "k1", "X-Client-Id": "ann"})[0] for _ in range(3)]
        self.assertEqual(statuses, [200, 200, 429])

    def test_nothing_passes_before_the_first_rules(self):
        sidecar = self.start()
        self.assertEqual(sidecar.request("GET", "/readyz", port=sidecar.admin_port)[0], 503)
        self.assertEqual(self.quota(sidecar)[0], 503)
        self.put("rules/edge", RULE % 3)
        until(lambda: self.quota(sidecar)[0] == 200, 2, "the first rules are in force")
        self.assertEqual(sidecar.request("GET", "/readyz", port=sidecar.admin_port)[0], 200)

    def test_a_copy_serves_while_zookeeper_is_away(self):
        self.put("rules/edge", RULE % 300)
        copy = ("--watch-copy", os.path.join(self.folder, "copy"))
        first = self.start(*copy)
        self.assertEqual(self.quota(first), (200, '"client";q=300'))
        until(lambda: os.path.exists(copy[1]), 5, "the copy is written")
        self.zookeeper.kill()
        self.assertEqual(self.quota(first), (200, '"client";q=300'))
        second = self.start(*copy)
        self.assertEqual(self.quota(second), (200, '"client";q=300'))
        self.assertIn("rules.copy_used", second.errors())

    def test_a_copy_that_cannot_be_written_is_logged(self):
        copy = os.path.join(self.folder, "copy")
        self.put("rules/edge", RULE % 300)
        sidecar = self.start("--watch-copy", copy)
        until(lambda: os.path.exists(copy), 5, "the copy is written")
        os.remove(copy)
        os.mkdir(copy)
        self.put("rules/edge", RULE % 500)
        until(lambda: "rules.copy_not_written" in sidecar.errors(), 5, "the log says so")
        self.assertIn(f"copy={copy} reason=\"cannot write {copy}: Is a directory\"", sidecar.errors())
        self.assertEqual(self.quota(sidecar), (200, '"client";q=500'))
        os.rmdir(copy)
        self.put("rules/edge", RULE % 600)
        until(lambda: "rules.copy_written" in sidecar.errors(), 5, "the log says so")
        self.assertTrue(os.path.isfile(copy))

    def test_deleted_documents_stay_until_a_restart_without_the_copy(self):
        copy = ("--watch-copy", os.path.join(self.folder, "copy"))
        self.put("rules/edge", RULE % 300)
        first = self.start(*copy)
        until(lambda: os.path.exists(copy[1]), 5, "the copy is written")
        self.operator.delete("/rate-limiter", recursive=True)
        until(lambda: first.metric("headgate_watch_kept_documents") == 1, 10, "the rule is kept")
        for words, hint in (
            (("confirm",), "restarted without its --watch-copy"),
            (("list",), "the admin address of `headgate serve`, not of a sidecar"),
        ):
            said = run(BINARY, "rules", *words, "--server", f"127.0.0.1:{first.admin_port}")
            self.assertEqual(said.returncode, 2)
            self.assertIn(hint, said.stderr)
        second = self.start(*copy)
        until(lambda: second.metric("headgate_watch_kept_documents") == 1, 10, "the rule is kept again")
        self.assertEqual(self.quota(second), (200, '"client";q=300'))
        third = self.start()
        self.assertEqual(self.quota(third)[0], 503)
        self.assertEqual(third.metric("headgate_watch_kept_documents"), 0)


if __name__ == "__main__":
    unittest.main()
