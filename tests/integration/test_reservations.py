"""Reservations and repeated checks across restarts, and across instances that share a real Redis."""

import json
import os
import signal
import tempfile
import unittest

from harness import PATIENT, Headgate, RedisServer, require_redis

RULE = ("--rule", "user: 1000/day fixed_window")


def body(cost, **more):
    return {"descriptors": [{"entries": [{"key": "user", "value": "ann"}]}], "cost": cost, **more}


class Reservations(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def post(self, server, path, content):
        status, _, text = server.request("POST", path, json.dumps(content), {"Content-Type": "application/json"})
        return status, json.loads(text)

    def reserve(self, server, cost, **more):
        status, answer = self.post(server, "/v1/reserve", body(cost, **more))
        self.assertEqual(status, 200, answer)
        return answer["reservation"]

    def settle(self, server, reservation, cost):
        return self.post(server, "/v1/settle", {"reservation": reservation, "cost": cost})

    def remaining(self, server):
        return self.post(server, "/v1/peek", body(0))[1]["decisions"][0]["remaining"]

    def secret_file(self):
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("a secret of the fleet\n")
        return secret

    def fleet(self, *more):
        require_redis()
        secret = self.secret_file()
        self.redis = self.enterContext(RedisServer())
        self.store = ("--store", f"redis://127.0.0.1:{self.redis.port}", *PATIENT)
        return [self.enterContext(Headgate(*RULE, *self.store, "--reservation-secret-file", secret, *more)) for _ in range(2)]

    def test_a_reservation_survives_a_restart_with_the_snapshot(self):
        snapshot = ("--snapshot", os.path.join(self.folder, "buckets.snapshot"))
        first = self.enterContext(Headgate(*RULE, *snapshot))
        open_one, settled = self.reserve(first, 300), self.reserve(first, 200)
        self.assertEqual(self.settle(first, settled, 100)[0], 200)
        self.assertEqual(self.post(first, "/v1/check", body(50, id="call-1"))[0], 200)
        self.assertEqual(first.stop(), 0)
        second = self.enterContext(Headgate(*RULE, *snapshot))
        self.assertEqual(self.remaining(second), 550)
        self.assertEqual(self.settle(second, open_one, 0)[0], 200)
        self.assertEqual(self.settle(second, open_one, 0)[0], 409)
        self.assertEqual(self.settle(second, settled, 0)[0], 409)
        self.assertEqual(self.post(second, "/v1/check", body(50, id="call-1"))[0], 200)
        self.assertEqual(self.remaining(second), 850)

    def test_after_a_crash_reservations_are_settled_against_the_buckets_of_the_snapshot(self):
        snapshot = ("--snapshot", os.path.join(self.folder, "buckets.snapshot"))
        first = self.enterContext(Headgate(*RULE, *snapshot))
        before = self.reserve(first, 200)
        self.assertEqual(first.stop(), 0)
        second = self.enterContext(Headgate(*RULE, *snapshot, "--snapshot-interval", "1h"))
        self.assertEqual(self.settle(second, before, 100)[0], 200)
        since = self.reserve(second, 300)
        self.assertEqual(self.remaining(second), 600)
        second.stop(signal.SIGKILL)
        third = self.enterContext(Headgate(*RULE, *snapshot))
        self.assertEqual(self.remaining(third), 800)
        self.assertEqual(self.settle(third, before, 100)[0], 200)
        self.assertEqual(self.remaining(third), 900)
        self.assertEqual(self.settle(third, since, 200)[0], 200)
        self.assertEqual(self.remaining(third), 1000)

    def test_without_a_snapshot_a_reservation_ends_with_the_server(self):
        first = self.enterContext(Headgate(*RULE))
        reservation = self.reserve(first, 300)
        second = self.enterContext(Headgate(*RULE))
        status, answer = self.settle(second, reservation, 0)
        self.assertEqual(status, 400)
        self.assertIn("not a reservation of this server", answer["detail"])

    def test_one_secret_does_not_share_the_buckets_of_instances_without_a_store(self):
        secret = ("--reservation-secret-file", self.secret_file())
        ann, bob = (self.enterContext(Headgate(*RULE, *secret)) for _ in range(2))
        reservation = self.reserve(ann, 1000)
        self.assertEqual(self.post(bob, "/v1/check", body(1000))[0], 200)
        self.assert_refused_as_of_others(bob, reservation)
        self.assertEqual(self.settle(ann, reservation, 400)[1]["returned"], [600])
        self.assertEqual(self.settle(ann, reservation, 0)[0], 409)
        self.assert_refused_as_of_others(self.enterContext(Headgate(*RULE, *secret)), reservation)

    def assert_refused_as_of_others(self, server, reservation):
        before = self.remaining(server)
        status, answer = self.settle(server, reservation, 0)
        self.assertEqual(status, 400, answer)
        self.assertIn("by an instance with other buckets, or before a restart without a snapshot", answer["detail"])
        self.assertEqual(self.remaining(server), before)

    def test_another_instance_settles_it(self):
        ann, bob = self.fleet()
        reservation = self.reserve(ann, 500)
        status, answer = self.settle(bob, reservation, 320)
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.settle(ann, reservation, 0)[0], 409)
        self.assertEqual(self.settle(bob, reservation, 0)[0], 409)
        for server in (ann, bob):
            server.stop()
        self.assertEqual(self.remaining(self.enterContext(Headgate(*RULE, *self.store))), 680)

    def test_a_retry_at_another_instance_counts_once(self):
        ann, bob = self.fleet()
        for i in range(20):
            for server in (ann, bob, ann):
                self.assertEqual(self.post(server, "/v1/check", body(10, id=f"call-{i}"))[0], 200)
        repeated = 'headgate_decisions_total{domain="default",rule="user",outcome="repeated"}'
        self.assertEqual(ann.metric(repeated) + bob.metric(repeated), 40)
        for server in (ann, bob):
            server.stop()
        self.assertEqual(self.remaining(self.enterContext(Headgate(*RULE, *self.store))), 800)

    def test_while_the_store_is_away_checks_with_an_id_are_decided_like_others(self):
        ann, bob = self.fleet()
        self.redis.kill()
        for server in (ann, bob):
            self.assertEqual(self.post(server, "/v1/check", body(1, id="call"))[0], 200)
            self.assertEqual(self.post(server, "/v1/check", body(1, id="call"))[0], 200)


if __name__ == "__main__":
    unittest.main()
