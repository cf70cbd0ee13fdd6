"""A store recovers while the load stays the same: how many calls it gets in its first seconds, and
how soon everything is normal.

The load is 80 % of every limit, so all of it passes in normal operation, and it does not wait for
late answers. Half of the decisions ask the store, half come from leases. If the fleet retried, each
decision would cost more calls than before. Some more are right: the debts of the outage leave the
leased buckets with few requests, and each batch of requests for such a bucket asks the store.
"""

import re
import unittest
from collections import namedtuple

from fleet import FleetTest, decided_alone
from harness import until, wait
from load import Load, check

INSTANCES, CONNECTIONS = 2, 2
BATCH, EVERY = 10, 0.02
ASKED_PER_SECOND = INSTANCES * CONNECTIONS * BATCH / EVERY
EXACT_KEYS, LEASED_KEYS = 40, 2


def limit_for(keys):
    """The load on a key is 80 % of this; the burst is one second, because the load comes in
    batches."""
    rate = round(ASKED_PER_SECOND / keys / 0.8)
    return f"{{requests_per_unit: {rate}, unit: second, algorithm: token_bucket, burst: {rate}"


RULES = f"""domain: edge
descriptors:
  - key: exact
    rate_limit: {limit_for(EXACT_KEYS)}, sharing: exact}}
  - key: leased
    rate_limit: {limit_for(LEASED_KEYS)}}}
"""
# Each batch of the leased load asks the store for each key, and the debts are settled in calls of their own:
# together a quarter of the calls before.
AMPLIFICATION_MAX = 1.35
# Relative to the requests sent, which may be fewer if the machine is busy; late answers do not
# count as recovered.
GOODPUT_LEAST, OFFERED_LEAST = 0.95, 0.8
BACK_SECONDS = 10

# `least` and `most`: certain bounds of the number of decisions that asked the store, at the time of
# `calls`.
Sample = namedtuple("Sample", "at least calls most asked admitted alone")
Window = namedtuple("Window", "seconds calls decided asked admitted alone")


class Recovery(FleetTest):
    RULES = RULES
    # The calls of normal operation, plus slack for a busy machine.
    TIMES = ("--store-timeout", "100ms", "--store-connect-timeout", "200ms")

    def setUp(self):
        super().setUp()
        self.instances = [self.instance() for _ in range(INSTANCES)]
        for instance in self.instances:
            until(lambda: instance.metric("headgate_instances") == INSTANCES, 10, "the instances know of each other")
        self.exact, self.leased = self.loads = [
            self.enterContext(Load(self.instances, {str(i): check(rule, str(i)) for i in range(keys)}, BATCH, CONNECTIONS, every=EVERY))
            for rule, keys in (("exact", EXACT_KEYS), ("leased", LEASED_KEYS))
        ]
        wait(1.5)  # until the hot keys are leased

    def calls(self):
        """Scripts that the store ran, as it counts them. It fails the calls of a script that it does not know, because
        it has restarted; they are sent again with their script."""
        stats = self.redis.command("INFO", "commandstats")
        counts = re.findall(r"cmdstat_eval(?:sha)?:calls=(\d+),.*failed_calls=(\d+)", stats)
        return sum(int(calls) - int(failed) for calls, failed in counts)

    def sample(self):
        at, least = self.exact.now(), self.exact.asked
        calls = self.calls()
        most = self.exact.asked + INSTANCES * CONNECTIONS * BATCH  # sent and not yet answered
        admitted = sum(load.admitted(name) for load in self.loads for name in list(load.batches))
        asked = sum(load.asked for load in self.loads)
        return Sample(at, least, calls, most, asked, admitted, decided_alone(self.instances))

    def window(self, seconds):
        a = self.sample()
        wait(seconds)
        b = self.sample()
        return Window(b.at - a.at, b.calls - a.calls, b.most - a.least, b.asked - a.asked, b.admitted - a.admitted, b.alone - a.alone)

    def quiet(self):
        """Waits for two seconds in which nothing changed; returns nothing if something did."""
        window = self.window(2)
        return None if window.alone else window

    @staticmethod
    def all_closed(instance):
        """Whether all breakers are closed, also those of event loops that have no requests."""
        return instance.metric("headgate_store_breakers_open") == 0

    def heals(self, away, back):
        usual = until(self.quiet, 15, "the load is decided normally at first")
        self.assertGreaterEqual(usual.admitted, 0.99 * usual.asked, "the load is below every limit")
        calls_per_decision = usual.calls / usual.decided

        away()
        wait(3)
        back()
        began, recovered, windows = self.loads[0].now(), None, []
        while recovered is None or self.loads[0].now() - began < 6:
            window = self.window(1)
            windows.append(window)
            self.assertLessEqual(window.calls, AMPLIFICATION_MAX * calls_per_decision * window.decided, (usual, windows))
            offered = window.asked >= OFFERED_LEAST * usual.asked / usual.seconds * window.seconds
            normal = offered and window.alone == 0 and window.admitted >= GOODPUT_LEAST * window.asked
            if normal and recovered is None:
                recovered = self.loads[0].now() - began
            self.assertLessEqual(recovered or self.loads[0].now() - began, BACK_SECONDS, windows)
        self.assertTrue(normal, windows)
        for instance in self.instances:
            until(lambda: self.all_closed(instance), 10, "the breakers are closed")
        for load in self.loads:
            self.assertEqual(load.stop().ended, 0)

    def test_recovery_after_the_store_stalled(self):
        self.addCleanup(self.redis.resume)
        self.heals(self.redis.pause, self.redis.resume)

    def test_recovery_after_the_store_restarted_empty(self):
        self.heals(self.redis.kill, self.redis.start)


class RecoveryOfLeases(FleetTest):
    """Many leased keys, each asked for in bursts by every event loop: a limit that was reached once
    is forgotten after a while."""

    KEYS = 40
    RULES = f"domain: edge\ndescriptors:\n  - key: leased\n    rate_limit: {limit_for(KEYS)}}}\n"
    TIMES = Recovery.TIMES

    def test_leased_keys_return_to_normal(self):
        instances = [self.instance() for _ in range(INSTANCES)]
        commands = {str(i): check("leased", str(i)) for i in range(self.KEYS)}
        load = self.enterContext(Load(instances, commands, BATCH // 2, 2 * CONNECTIONS, every=EVERY))

        def passing():
            """The part that passes in the next two seconds without decisions that an instance made
            alone."""
            asked, admitted, alone = load.asked, sum(map(load.admitted, commands)), decided_alone(instances)
            wait(2)
            share = (sum(map(load.admitted, commands)) - admitted) / max(1, load.asked - asked)
            return share if decided_alone(instances) == alone else 0

        until(lambda: passing() >= 0.99, 15, "nearly all requests pass at first")
        self.addCleanup(self.redis.resume)
        self.redis.pause()
        wait(3)
        self.redis.resume()
        until(lambda: passing() >= GOODPUT_LEAST, BACK_SECONDS, "nearly all passes again")
        self.assertEqual(load.stop().ended, 0)


if __name__ == "__main__":
    unittest.main()
