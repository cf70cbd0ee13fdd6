"""An instance that holds leases of a key gets no more requests for it, or dies: when can another
instance admit everything that is left?"""

import signal
import unittest
from concurrent.futures import ThreadPoolExecutor

from faults import record
from fleet import FleetTest
from harness import Headgate, until, wait
from load import Load, check, passed
from resp import Replies

REQUESTS = 3000
KINDS = {
    "bucket": "algorithm: token_bucket",
    "meter": "algorithm: leaky_bucket",
    "window": "algorithm: fixed_window",
    "counter": "algorithm: sliding_window_counter",
}
RULES = "domain: edge\ndescriptors:\n" + "".join(
    f"  - key: {name}\n    rate_limit: {{requests_per_unit: {REQUESTS}, unit: day, {words}}}\n" for name, words in KINDS.items()
)
# As many loops as a large machine has.
THREADS = 16
LEASE_SECONDS = 2
# Small leases are returned shortly before they end.
IDLE_SECONDS = 2
WATCHED_SECONDS = 5
HELD = "headgate_lease_requests_held"


class Silent(FleetTest):
    RULES = RULES

    def take_leases(self, instance):
        """Covers all event loops that get connections; returns how many requests of each key
        passed."""

        def ask(_):
            admitted = dict.fromkeys(KINDS, 0)
            with instance.connect() as connection:
                reader = Replies(connection)
                for _ in range(8):
                    for name in KINDS:
                        connection.sendall(check(name, "key") * 2)
                        admitted[name] += sum(map(passed, reader.take(2)))
                    wait(0.03)
            return admitted

        with ThreadPoolExecutor(2 * THREADS) as pool:
            counts = list(pool.map(ask, range(2 * THREADS)))
        return {name: sum(count[name] for count in counts) for name in KINDS}

    def withheld(self, leave):
        """For each kind of key: for how many seconds after the first instance was gone the other
        was refused but was admitted later. And the requests that all instances admitted."""
        silent, other = self.instance(threads=THREADS), self.instance()
        for instance in (silent, other):
            until(lambda: instance.metric("headgate_instances") == 2, 10, "the instances know of each other")
        admitted = self.take_leases(silent)
        self.held = silent.metric(HELD)  # of all keys
        self.assertGreater(self.held, 0, "the instance holds leases")
        leave(silent)
        began = Load.now()
        load = self.enterContext(Load([other], {name: check(name, "key") for name in KINDS}, batch=40, connections=4))
        wait(WATCHED_SECONDS)
        load.stop()
        last = {name: max(b.sent for b in load.batches[name] if b.passed) - began for name in KINDS}
        return last, {name: admitted[name] + load.admitted(name) for name in KINDS}

    def check(self, name, last, admitted, within):
        # A bucket of a day refills at most one request within the test.
        record(self, name, (max(admitted.values()) - 1 - REQUESTS) / REQUESTS, 0, max(last.values()), within)

    def test_requests_held_by_an_idle_instance(self):
        last, admitted = self.withheld(lambda _: None)
        for name in KINDS:
            self.assertGreaterEqual(admitted[name], REQUESTS, f"{name}: the whole limit can be admitted")
        self.check("idle", last, admitted, IDLE_SECONDS)

    def lost(self, name, leave):
        """Its leases count as spent when they expire; everything else can be admitted."""
        last, admitted = self.withheld(leave)
        for kind in KINDS:
            self.assertGreaterEqual(admitted[kind], REQUESTS - self.held, kind)
        self.check(name, last, admitted, LEASE_SECONDS)

    def test_requests_held_by_a_paused_instance(self):
        self.lost("paused", Headgate.pause)

    def test_requests_held_by_a_killed_instance(self):
        self.lost("killed", lambda instance: instance.stop(signal.SIGKILL))


if __name__ == "__main__":
    unittest.main()
