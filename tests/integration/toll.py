"""Measures what a fault costs the users of a fleet: how many more requests of an overloaded key
pass than one bucket would admit, and for how long users with room are refused."""

import time

from faults import record
from fleet import FleetTest
from harness import until, wait
from load import Load, check

# A burst of half a second, so that a machine that is busy for less than that loses nothing.
RATE, BURST = 2000, 1000
LIMIT = f"requests_per_unit: {RATE}, unit: second, algorithm: token_bucket, burst: {BURST}"
RULES = f"""domain: edge
descriptors:
  - key: hot
    rate_limit: {{{LIMIT}}}
  - key: warm
    rate_limit: {{{LIMIT}}}
  - key: exact
    rate_limit: {{{LIMIT}, sharing: exact}}
"""
INSTANCES = 2
LEASE_SECONDS = 2  # life of a lease at the store
KINDS, NEW_KEYS = ("warm", "exact", "new"), 500


def by_connection(load, name):
    batches = load.batches[name]
    return [[batch for batch in batches if batch.connection == i] for i in range(load.connections)]


def alone_by_connection(load, name):
    """For each connection, the batches that were decided without the store, at least in part."""
    return [[batch for batch in batches if batch.alone] for batches in by_connection(load, name)]


def outage_term(spans, connections, burst, rate, lost_end=0):
    """The excess of an outage in mode `local`, in capacities. `spans`: the outages of the store.
    `connections`: see alone_by_connection. `lost_end`: what the store may have lost, which is one
    capacity if its history broke.

    The shares of the fleet form one bucket: one capacity and rate · D, and D lasts until no
    instance decides alone. The store's bucket gets no requests meanwhile, and is at most full when
    the outage ends, whatever it has lost. So a single outage of any length adds at most that
    capacity and the capacity with which the shares begin, plus what passes while some instances
    have the store and others do not (D′).
    """
    away, apart = 0, 0
    for (began, back), (until, _) in zip(spans, [*spans[1:], (float("inf"), None)]):
        alone = [[b for b in batches if b.answered >= began and b.sent < until] for batches in connections]
        firsts = [batches[0].sent for batches in alone if batches]
        lasts = [batches[-1].answered for batches in alone if batches]
        away += max([back, *lasts]) - began
        if firsts:
            together = max(0, min(lasts) - max(firsts)) if all(alone) else 0
            apart += max(lasts) - min(firsts) - together
    return min(1 + lost_end + rate * away / burst, 1 + len(spans) + rate * apart / burst)


def longest_refused(batches):
    """The longest time from sending a request that was refused until a request passed."""
    longest, since = 0, None
    for batch in batches:
        if since is not None:
            longest = max(longest, batch.answered - since)
        since = None if batch.passed else since or batch.sent
    return longest


class Toll:
    """Asks all instances for far more of the key `hot` than its limit, and each instance for keys
    that always have room: a leased one, an exact one, and new ones."""

    def __init__(self, test, instances):
        self.test = test
        with_room = {
            (kind, i): check("warm", f"new{i}") if kind == "new" else check(kind, kind) for i in range(NEW_KEYS) for kind in KINDS
        }
        self.hot = test.enterContext(Load(instances, {"hot": check("hot", "hot")}, batch=40, connections=2))
        self.room = [test.enterContext(Load([i], with_room, batch=1, pause=0.01)) for i in instances]
        self.spans = []

    def away(self, began, back):
        """Records that the store was unreachable from `began` to `back`, by time.monotonic()."""
        self.spans.append((began, back))

    def outage(self, lost_end=0):
        """The stated excess for the outages in `away`."""
        return outage_term(self.spans, alone_by_connection(self.hot, "hot"), BURST, RATE, lost_end)

    def stop(self):
        for load in (self.hot, *self.room):
            load.stop()

    def refused(self):
        """The longest time for which a client with room was refused: for each kind of key, at each
        instance."""
        return max(
            longest_refused(sorted(batch for (of, _), batches in load.batches.items() if of == kind for batch in batches))
            for load in self.room
            for kind in KINDS
        )

    def check(self, name, term, refused_most):
        """Ends the load, records the cost of the fault, and compares it with the stated `term` in
        capacities, which may be a function that is called after the load has ended."""
        self.stop()
        self.test.assertGreater(self.hot.asked, 1.5 * self.hot.admitted("hot"), "the load was too low")
        self.test.assertGreater(self.hot.admitted("hot"), BURST, "the hot key got requests")
        over = self.hot.excess("hot", BURST, RATE) / BURST
        record(self.test, name, over, term() if callable(term) else term, self.refused(), refused_most)


class FaultTest(FleetTest):
    RULES = RULES

    def fleet(self, *args):
        instances = [self.instance(*args) for _ in range(INSTANCES)]
        for instance in instances:
            until(lambda: instance.metric("headgate_instances") == INSTANCES, 10, "the instances know of each other")
        return instances

    def begin(self, *args):
        self.instances = self.fleet(*args)
        toll = Toll(self, self.instances)
        wait(1)
        return toll

    def away(self, toll, seconds, leave=None, back=None):
        """Makes the store unreachable for this long."""
        self.addCleanup(self.redis.resume)
        began = time.monotonic()
        (leave or self.redis.pause)()
        wait(seconds)
        (back or self.redis.resume)()
        toll.away(began, time.monotonic())

    def until_shared(self, toll):
        """No instance decides alone any more."""

        def is_shared():
            toll.hot.take_modes()
            wait(0.5)
            return set(toll.hot.take_modes()["hot"]) <= {"exact", "leased"}

        until(is_shared, 15, "all decisions are made with the store again")
        wait(0.5)
