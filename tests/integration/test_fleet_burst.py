"""A healthy store that is asked for more at once than it answers in time, and one that pauses again and again: neither is an outage."""

import threading
import unittest

from fleet import FleetTest
from harness import until, wait
from load import Load, check, encode, read_reply

INSTANCES = 3
KEYS = 1152
RATE, BURST = 400, 40
RULES = f"""domain: edge
descriptors:
  - key: hot
    rate_limit: {{requests_per_unit: {RATE}, unit: second, algorithm: token_bucket, burst: {BURST}}}
"""
STALL, PERIOD, STALLS = 0.1, 1.0, 5


class Burst(FleetTest):
    RULES = RULES
    TIMES = ("--store-connect-timeout", "2s")  # store_timeout as usual: 10 ms

    def fleet(self, *args):
        instances = [self.instance(*args) for _ in range(INSTANCES)]
        for instance in instances:
            until(lambda: instance.metric("headgate_instances") == INSTANCES, 10, "the instances know of each other")
        return instances

    def opened(self, instances):
        return sum(i.metric("headgate_store_breaker_opened_total") for i in instances)

    def test_many_new_keys_at_once_open_no_breaker(self):
        instances = self.fleet()
        connections = [self.enterContext(instance.connect()) for instance in instances]
        start = threading.Barrier(INSTANCES)
        answered = [0] * INSTANCES

        def run(i):
            # More at once for each than the store can answer in 10 ms.
            for turn in range(5):
                commands = b"".join(encode("CL.THROTTLE", f"key{turn}.{i}.{k}", "9", "10", "60") for k in range(KEYS))
                start.wait()
                connections[i].sendall(commands)
                reader = connections[i].makefile("rb")
                answered[i] += sum(isinstance(read_reply(reader), list) for _ in range(KEYS))

        threads = [threading.Thread(target=run, args=(i,)) for i in range(INSTANCES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answered, [5 * KEYS] * INSTANCES)
        self.assertEqual(self.opened(instances), 0)
        # The store was used all the time.
        for instance in instances:
            self.assertGreater(instance.metric('headgate_shared_decisions_total{mode="exact"}'), 500)

    def test_outages_that_follow_each_other_add_up_by_their_lengths(self):
        instances = self.fleet()
        load = self.enterContext(Load(instances, {"hot": check("hot", "hot")}, batch=10, connections=2, every=0.02))
        wait(1)
        self.addCleanup(self.redis.resume)
        for _ in range(STALLS):
            self.redis.pause()
            wait(STALL)
            self.redis.resume()
            wait(PERIOD - STALL)
        load.stop()
        self.assertEqual(self.opened(instances), 0, "a short pause is no outage")
        # The term: rate · D and one capacity. On a busy machine a pause is noticed late: twice its length.
        term = RATE * 2 * STALL * STALLS + BURST
        self.assertLessEqual(load.excess("hot", BURST, RATE), term)


if __name__ == "__main__":
    unittest.main()
