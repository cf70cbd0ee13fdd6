"""A refund whose answer is late, and is repeated, gives back once."""

import json
import unittest

from fleet import FleetTest
from harness import until
from resp import Replies, encode

ENTRY = {"entries": [{"key": "quota", "value": "ann"}]}


class Refunds(FleetTest):
    RULES = """domain: edge
descriptors:
  - key: quota
    rate_limit: {requests_per_unit: 1000, unit: day, algorithm: token_bucket, sharing: exact}
"""
    TIMES = ("--store-timeout", "300ms", "--store-connect-timeout", "2s")

    def post(self, instance, path, **fields):
        body = json.dumps({"domain": "edge", "descriptors": [ENTRY], **fields})
        status, _, text = instance.request("POST", path, body)
        return status, json.loads(text)

    def command(self, instance, *words):
        with instance.connect() as connection:
            connection.sendall(encode(*words))
            return Replies(connection).take(1)[0]

    def left(self, instance):
        return self.post(instance, "/v1/peek")[1]["decisions"][0]["remaining"]

    def test_a_refund_that_times_out_is_repeated(self):
        instances = [self.instance(), self.instance()]
        refund = ("HG.REFUND", "edge", "COST", "100", "ID", "a", "ENTRIES", "1", "quota", "ann")
        self.assertEqual(self.post(instances[0], "/v1/check", cost=600)[0], 200)
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        status, problem = self.post(instances[0], "/v1/refund", cost=100)
        self.assertEqual(status, 503)
        self.assertIn("rule quota may have been refunded", problem["detail"])
        self.redis.resume()
        until(lambda: self.left(instances[1]) == 500, 5, "the store has executed it")
        # With an id any instance may get it again, in any protocol.
        self.assertEqual(self.post(instances[0], "/v1/refund", cost=100, id="a")[0], 200)
        self.assertEqual(self.post(instances[1], "/v1/refund", cost=100, id="a")[0], 200)
        self.command(instances[1], *refund)
        self.assertEqual(self.left(instances[0]), 600)
        # An id that timed out is not executed twice.
        until(lambda: self.post(instances[0], "/v1/peek")[0] == 200, 5, "the store is used again")
        self.redis.pause()
        status, problem = self.post(instances[0], "/v1/refund", cost=100, id="b")
        self.assertEqual(status, 503)
        self.redis.resume()
        for _ in range(3):
            self.post(instances[1], "/v1/refund", cost=100, id="b")
        self.assertLessEqual(self.left(instances[1]), 700)


if __name__ == "__main__":
    unittest.main()
