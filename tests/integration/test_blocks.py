"""Rules that block keys, with real processes: the block holds in the whole fleet at once, answers name its end, an
operator can end it, and it survives a restart."""

import json
import os
import tempfile
import time
import unittest

from harness import PATIENT, Headgate, RedisServer, require_redis

RULES = """domain: default
descriptors:
  - key: login
    rate_limit: {period: 1s, requests_per_unit: 5, block: [10m, 1h]}
  - key: short
    rate_limit: {period: 1s, requests_per_unit: 5, block: 2s}
"""


class Blocks(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(folder, "rules.yaml")
        self.snapshot = os.path.join(folder, "snapshot")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)

    def fleet(self):
        require_redis()
        redis = self.enterContext(RedisServer())
        words = ("--rules", self.rules, "--store", f"redis://127.0.0.1:{redis.port}", *PATIENT)
        return [self.enterContext(Headgate(*words)) for _ in range(2)]

    def exceed(self, server, **key):
        """Asks until the limit denies; returns that answer."""
        for _ in range(20):
            answer = server.check(**key)
            if answer[0] == 429:
                return answer
        self.fail("the limit never denied")

    def check_answer(self, answer, seconds):
        status, fields, body = answer
        self.assertEqual(status, 429)
        self.assertIn(int(fields["retry-after"]), (seconds, seconds - 1))
        self.assertRegex(fields["ratelimit"], rf";r=0;t=({seconds}|{seconds - 1})\b")
        decision = body["decisions"][0]
        self.assertEqual(decision["remaining"], 0)
        self.assertEqual(decision["blocked_ms"], decision["retry_after_ms"])
        self.assertAlmostEqual(decision["blocked_ms"], 1000 * seconds, delta=1500)

    def test_a_block_holds_for_all_instances_at_once_and_a_reset_ends_it(self):
        one, other = self.fleet()
        self.check_answer(self.exceed(one, login="ann"), 600)
        # The bucket has refilled since.
        time.sleep(1.1)
        self.check_answer(other.check(login="ann"), 599)
        for cost in (0, 1):
            peeked = other.check(path="/v1/peek", cost=cost, login="ann")[2]
            self.assertEqual(peeked["allowed"], cost == 0)
            self.assertAlmostEqual(peeked["decisions"][0]["blocked_ms"], 599_000, delta=1500)
        self.assertEqual(other.check(login="ben")[0], 200)
        self.assertEqual(other.check(path="/v1/reset", login="ann")[0], 200)
        self.assertEqual(one.check(login="ann")[0], 200)
        blocked = 'headgate_decisions_total{domain="default",rule="login",outcome="blocked"}'
        self.assertEqual(one.metric(blocked), 1)
        self.assertEqual(other.metric(blocked), 1)

    def test_a_client_that_retries_early_and_then_waits_passes(self):
        one, other = self.fleet()
        began = time.monotonic()
        self.exceed(one, short="ann")
        while time.monotonic() < began + 1.8:
            for server in (one, other):
                self.assertEqual(server.check(short="ann")[0], 429)
            time.sleep(0.05)
        wait_ms = one.check(short="ann")[2]["decisions"][0]["retry_after_ms"]
        self.assertLess(wait_ms, 500)
        time.sleep(wait_ms / 1000 + 0.01)
        self.assertEqual(other.check(short="ann")[0], 200)

    def test_a_block_survives_a_restart(self):
        words = ("--rules", self.rules, "--snapshot", self.snapshot)
        with Headgate(*words) as server:
            self.exceed(server, login="ann")
            self.assertEqual(server.stop(), 0)
        server = self.enterContext(Headgate(*words))
        time.sleep(1.1)
        status, _, body = server.check(login="ann")
        self.assertEqual(status, 429, json.dumps(body))
        self.assertGreater(body["decisions"][0]["blocked_ms"], 590_000)
        self.assertEqual(server.check(login="ben")[0], 200)


if __name__ == "__main__":
    unittest.main()
