"""A sidecar that follows rules in ZooKeeper."""

import os
import tempfile
import threading
import unittest

from kazoo.exceptions import NoAuthError

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

    def test_a_key_whose_requests_in_flight_are_limited(self):
        self.put("config/k1", b'{"Limit": 1, "Algorithm": "concurrency", "Ttl": "60s"}')
        mappings = os.path.join(self.folder, "mappings.yaml")
        with open(mappings, "w", encoding="utf-8") as file:
            file.write(MAPPINGS)
        arrived, end = threading.Event(), threading.Event()

        def answer_late(connection, head):
            arrived.set()
            end.wait(20)
            return answer(connection, head)

        upstream = Upstream(self, answer_late)
        words = ("--watch", self.zookeeper.url(), "--mappings", mappings)
        sidecar = self.enterContext(Sidecar(upstream.port, args=words))
        statuses = []
        who = {"X-API-Key": "k1", "X-Client-Id": "ann"}
        first = threading.Thread(target=lambda: statuses.append(self.quota(sidecar, **who)[0]))
        first.start()
        self.assertTrue(arrived.wait(20))
        self.assertEqual(self.quota(sidecar, **who)[0], 429)
        end.set()
        first.join()
        until(lambda: self.quota(sidecar, **who)[0] == 200, 2, "its permit is back")
        self.assertEqual(statuses, [200])

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
        self.assertIn(f"copy={copy} reason=\"{copy} is a directory\"", sidecar.errors())
        self.assertEqual(self.quota(sidecar), (200, '"client";q=500'))
        os.rmdir(copy)
        self.put("rules/edge", RULE % 600)
        until(lambda: "rules.copy_written" in sidecar.errors(), 5, "the log says so")
        self.assertTrue(os.path.isfile(copy))

    def delete_all(self, *sidecars):
        """Deletes everything, and waits until these sidecars keep their rule."""
        self.operator.delete("/rate-limiter", recursive=True)
        for sidecar in sidecars:
            until(lambda one=sidecar: self.kept(one) == 1, 10, "the rule is kept")

    @staticmethod
    def kept(sidecar):
        return sidecar.metric("headgate_watch_kept_documents")

    def test_deleted_documents_stay_until_a_restart_without_the_copy(self):
        copy = ("--watch-copy", os.path.join(self.folder, "copy"))
        self.put("rules/edge", RULE % 300)
        first = self.start(*copy)
        until(lambda: os.path.exists(copy[1]), 5, "the copy is written")
        self.delete_all(first)
        second = self.start(*copy)
        until(lambda: self.kept(second) == 1, 10, "the rule is kept again")
        self.assertEqual(self.quota(second), (200, '"client";q=300'))
        third = self.start()
        self.assertEqual(self.quota(third)[0], 503)
        self.assertEqual(self.kept(third), 0)

    @staticmethod
    def rules(sidecar, *words):
        return run(BINARY, "rules", *words, "--server", f"127.0.0.1:{sidecar.admin_port}")

    def test_a_deletion_is_confirmed_on_each_sidecar(self):
        self.put("rules/edge", RULE % 300)
        replicas = [self.start("--threads", "2"), self.start()]
        nothing = self.rules(replicas[0], "confirm")
        self.assertEqual(nothing.returncode, 2)
        self.assertIn("nothing waits for a confirmation", nothing.stderr)
        self.delete_all(*replicas)
        self.put("config/k1", b'{"Limit": 2, "WindowSeconds": 3600}')
        # A busy machine can take too long to note it; then nothing is confirmed.
        until(lambda: self.rules(replicas[0], "confirm").returncode == 0, 20, "it is confirmed")
        until(lambda: self.kept(replicas[0]) == 0, 5, "the rule is gone")
        self.assertEqual(self.quota(replicas[0]), (200, '"fair-share";q=1000000'))
        self.assertEqual(self.kept(replicas[1]), 1)
        self.assertEqual(self.quota(replicas[1]), (200, '"client";q=300'))
        notes = [self.operator.get("/rate-limiter/audit/" + name)[0] for name in self.operator.get_children("/rate-limiter/audit")]
        self.assertTrue(any(b'"action":"confirm"' in note for note in notes), notes)
        self.assertIn("rules.edited", replicas[0].errors())

    def test_a_confirmation_needs_the_right_to_change(self):
        self.put("rules/edge", RULE % 300)
        credential = os.path.join(self.folder, "credential")
        with open(credential, "w", encoding="utf-8") as file:
            file.write("sesame\n")
        sidecar = self.start("--credential-file", credential)
        self.operator.delete("/rate-limiter", recursive=True)
        until(lambda: "1 document was deleted and stays in force" in sidecar.errors(), 10, "the rule is kept")
        self.assertEqual(sidecar.request("POST", "/v1/confirm", "{}", port=sidecar.admin_port)[0], 401)
        login = ("--credential-file", credential)
        until(lambda: self.rules(sidecar, "confirm", *login).returncode == 0, 20, "it is confirmed")

    def test_a_password_in_a_file_is_neither_shown_nor_logged(self):
        password = os.path.join(self.folder, "password")
        with open(password, "w", encoding="utf-8") as file:
            file.write("sesame\n")
        words = ("--watch", self.zookeeper.url("/private", login="gate@"), "--watch-password-file", password, "--log-level", "debug")
        sidecar = self.enterContext(Sidecar(self.upstream.port, args=words))
        until(lambda: self.operator.exists("/private/rules"), 10, "it makes its nodes")
        with self.assertRaises(NoAuthError):
            self.operator.create("/private/rules/edge", RULE % 300)
        self.operator.add_auth("digest", "gate:sesame")
        self.operator.create("/private/rules/edge", RULE % 300)
        until(lambda: self.quota(sidecar) == (200, '"client";q=300'), 5, "the rule is in force")
        self.assertNotIn("sesame", sidecar.errors())
        self.assertNotIn("sesame", str(sidecar.args))

    def test_changes_are_taken_and_all_replicas_follow_them(self):
        self.put("rules/edge", RULE % 300)
        replicas = [self.start(), self.start()]
        self.assertIn("/rate-limiter/rules/edge", self.rules(replicas[0], "list").stdout)
        wanted = os.path.join(self.folder, "edge.yaml")
        with open(wanted, "wb") as file:
            file.write(RULE % 500)
        done = self.rules(replicas[0], "put", "/rate-limiter/rules/edge", wanted, "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        for replica in replicas:
            until(lambda replica=replica: self.quota(replica) == (200, '"client";q=500'), 5, "the new limit is in force")

    def test_without_rules_there_is_nothing_to_change(self):
        without = self.enterContext(Sidecar(self.upstream.port))
        for verb in ("list", "confirm"):
            refused = self.rules(without, verb)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("or of a sidecar with rules", refused.stderr)


if __name__ == "__main__":
    unittest.main()
