"""All instances get the same demand for one key, several times its limit: the cost for each
instance and the share that each gets."""

import unittest

from fleet import FleetTest, decided_alone
from harness import until, wait
from load import Load, check

INSTANCES = 3
RATE = 1500
RULES = f"""domain: edge
descriptors:
  - key: hot
    rate_limit: {{requests_per_unit: {RATE}, unit: second, algorithm: token_bucket}}
"""
SECONDS = 10
CALLS_PER_SECOND_MAX = 50  # at least 20 ms apart
SHARE_LEAST = 0.6
# The part of the rate that all instances together admit: asking the store seldom loses little. A
# busy machine admits less.
GOODPUT_LEAST = 0.8


class Fairness(FleetTest):
    RULES = RULES

    def store_calls(self, instance):
        return sum(instance.metric(f'headgate_store_calls_total{{outcome="{o}"}}') for o in ("answered", "timed_out", "aborted"))

    def test_an_overloaded_key_is_cheap_and_shared_evenly(self):
        instances = [self.instance(threads=3) for _ in range(INSTANCES)]
        for instance in instances:
            until(lambda: instance.metric("headgate_instances") == INSTANCES, 10, "the instances know of each other")
        # Each load asks for more than the limit, over connections that are spread over the event
        # loops.
        loads = [
            self.enterContext(Load([i], {"hot": check("hot", "hot")}, batch=1, connections=4, pause=0))
            for i in instances
        ]
        wait(2)  # until the saved-up tokens are spent
        asked = [load.asked for load in loads]
        admitted = [load.admitted("hot") for load in loads]
        calls = [self.store_calls(i) for i in instances]
        began = loads[0].now()
        wait(SECONDS)
        seconds = loads[0].now() - began
        admitted = [load.admitted("hot") - before for load, before in zip(loads, admitted)]
        asked = [load.asked - before for load, before in zip(loads, asked)]
        per_second = [(self.store_calls(i) - before) / seconds for i, before in zip(instances, calls)]
        seen = f"admitted {admitted} of {asked} in {seconds:.1f} s, store calls per second {per_second}"
        for load in loads:
            load.stop()
        self.assertEqual(decided_alone(instances), 0, seen)
        self.assertGreater(min(asked), 1.2 * RATE * seconds / INSTANCES, f"the key was not overloaded by each: {seen}")
        # The heartbeat of the instance adds one call per second.
        self.assertLessEqual(max(per_second), CALLS_PER_SECOND_MAX + 2, seen)
        self.assertGreaterEqual(min(admitted), SHARE_LEAST * sum(admitted) / INSTANCES, seen)
        self.assertGreaterEqual(sum(admitted), GOODPUT_LEAST * RATE * seconds, seen)


if __name__ == "__main__":
    unittest.main()
