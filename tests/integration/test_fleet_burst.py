"""A burst beyond what a healthy store can answer in time, or a store that pauses again and again,
does not count as an outage."""

import time
import unittest

from harness import wait
from load import passed
from resp import Replies, encode
from toll import FaultTest

NEW_KEYS = 1152  # sent at once; more than the store answers in 10 ms


class Burst(FaultTest):
    TIMES = ("--store-connect-timeout", "2s")  # the default store_timeout of 10 ms

    def assert_no_breaker_opened(self):
        self.assertEqual(sum(i.metric("headgate_store_breaker_opened_total") for i in self.instances), 0)

    def test_the_store_flaps(self):
        toll = self.begin()
        for _ in range(5):
            self.away(toll, 0.1)
            wait(0.9)
        self.until_shared(toll)
        self.assert_no_breaker_opened()
        toll.check("flapping", toll.outage, 0)

    def test_many_new_keys_at_once_do_not_open_the_breaker(self):
        toll = self.begin()
        connections = [self.enterContext(instance.connect()) for instance in self.instances]
        refused = 0
        began = time.monotonic()
        for turn in range(5):
            for i, connection in enumerate(connections):
                connection.sendall(b"".join(encode("CL.THROTTLE", f"key{turn}.{i}.{k}", "9", "10", "60") for k in range(NEW_KEYS)))
            for connection in connections:
                refused += sum(not passed(reply) for reply in Replies(connection).take(NEW_KEYS))
        toll.away(began, time.monotonic())
        self.until_shared(toll)
        self.assertEqual(refused, 0, "a new key has room")
        self.assert_no_breaker_opened()
        # The store made decisions all the time.
        for instance in self.instances:
            self.assertGreater(instance.metric('headgate_shared_decisions_total{mode="exact"}'), 500)
        toll.check("new_keys", toll.outage, 0)


if __name__ == "__main__":
    unittest.main()
