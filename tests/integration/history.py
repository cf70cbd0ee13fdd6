"""Measures what an event at the store costs the users of a fleet: which of them it locks out, for
how long, and how many requests it admits twice.

There is a rule for every kind of limit, leased and exact. Each rule has four kinds of keys: a hot
key, asked far beyond its limit; a warm key, which always has room; quiet keys, used shortly before;
and new keys. The failure policy is `deny`, so that every refusal without a reason is seen, and only
the store and leases admit requests.
"""

import datetime
import os
import time

from faults import SLACK_SECONDS, record
from harness import Headgate, until, wait
from load import Load, check

LEASE_SECONDS = 2  # the life of a lease at the store, in seconds
START_SECONDS = 1  # precision of the start time that a server reports, in seconds

# By rule name: requests, the seconds in which they refill (0: with the next window), and the text
# of the rule. The load on a warm key, per second and over a whole test, fits into each of them.
LIMITS = {
    "bucket_second": (200, 1, "unit: second, requests_per_unit: 200, algorithm: token_bucket"),
    "bucket_day": (3000, 86400, "unit: day, requests_per_unit: 3000, algorithm: token_bucket"),
    "window_second": (200, 1, "unit: second, requests_per_unit: 200, algorithm: fixed_window"),
    "window_day": (3000, 0, "unit: day, requests_per_unit: 3000, algorithm: fixed_window"),
    "window_month": (3000, 0, "unit: month, requests_per_unit: 3000, algorithm: fixed_window"),
}
SHARINGS = ("leased", "exact")
RULES = "domain: edge\ndescriptors:\n" + "".join(
    f"  - key: {name}_{sharing}\n    rate_limit: {{{words}, sharing: {sharing}, on_store_failure: deny}}\n"
    for name, (_, _, words) in LIMITS.items()
    for sharing in SHARINGS
)
NAMES = [f"{name}_{sharing}" for name in LIMITS for sharing in SHARINGS]
WARM_BATCH = 3
QUIET_USED = 10


def key_of(rule, value):
    """The name of the bucket in the store."""
    return f"hg:{{r|edge|{rule}={value}#0}}"


class Users:
    """Load on two instances of a fleet before, during and after an event."""

    def __init__(self, test, folder, store, is_in_shard=lambda key: True):
        rules = os.path.join(folder, "edge.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        slow = ("--store-timeout", "1s", "--store-connect-timeout", "1s", "--threads", "1")
        self.test = test
        self.is_in_shard = is_in_shard
        self.instances = [test.enterContext(Headgate("--rules", rules, "--store", store, *slow)) for _ in range(2)]
        self.began_on = datetime.datetime.now(datetime.timezone.utc).date()
        self.values = {name: {kind: self._value(name, kind) for kind in ("hot", "warm", "quiet", "new")} for name in NAMES}
        hot = {name: check(name, self.values[name]["hot"]) for name in NAMES}
        warm = {name: check(name, self.values[name]["warm"]) for name in NAMES}
        for name in NAMES:
            value = self.values[name]["quiet"]
            for i in range(QUIET_USED):
                until(lambda: self.instances[i % 2].check("edge", **{name: value})[0] == 200, 5, f"{value} is used")
        self.hot = test.enterContext(Load(self.instances, hot, batch=40, pause=0.01))
        self.warm = test.enterContext(Load(self.instances, warm, batch=WARM_BATCH, pause=0.01))
        wait(1.5)

    def _value(self, name, kind):
        return next(v for v in (f"{kind}{i}" for i in range(1000)) if self.is_in_shard(key_of(name, v)))

    def keys(self):
        """The names of all buckets that the load uses."""
        return [key_of(name, value) for name in NAMES for value in self.values[name].values()]

    def after(self, began, back):
        """The cost of the event that `began`, after which the store was `back`; both are times of
        the load's clock."""
        waited = {}
        pending = [(name, kind) for name in NAMES for kind in ("quiet", "new")]
        while pending:
            self.test.assertLess(time.monotonic() - back, 30, f"locked out: {pending}")
            for turn, (name, kind) in enumerate(list(pending)):
                asked = time.monotonic()
                if self.instances[turn % 2].check("edge", **{name: self.values[name][kind]})[0] == 200:
                    waited[f"{name} {kind}"] = asked - back
                    pending.remove((name, kind))
            wait(0.02)
        wait(max(0, back + LEASE_SECONDS + START_SECONDS + SLACK_SECONDS + 1 - time.monotonic()))
        for load in (self.warm, self.hot):
            load.stop()
            self.test.assertEqual(load.ended, 0)
        for name in NAMES:
            denied = [batch for batch in self.warm.batches[name] if batch.passed < WARM_BATCH]
            early = [batch for batch in denied if batch.answered < began]
            self.test.assertEqual(early, [], f"{name}: a warm key has room before anything happened")
            # The time when the last of them was sent.
            waited[f"{name} warm"] = max((batch.sent - back for batch in denied), default=0)
        crossed = datetime.datetime.now(datetime.timezone.utc).date() != self.began_on
        extra = {}
        for name in NAMES:
            requests, seconds, _ = LIMITS[name.rsplit("_", 1)[0]]
            # A window may begin and end at any time within an interval.
            whole = 2 if name.startswith("window_second") or (crossed and name.startswith("window")) else 1
            extra[name] = self.hot.excess(name, whole * requests, requests / seconds if seconds else 0) / requests
            self.test.assertGreater(self.hot.admitted(name), 0.5 * requests, f"{name}: the hot key was asked")
        return waited, extra

    def learned(self, what):
        return sum(i.metric(f'headgate_store_history_changes_total{{event="{what}"}}') for i in self.instances)


def check_event(test, name, waited, extra, lock_out, capacities, found=0):
    """Compares the measurement with fleet.md: for how many seconds after the store is back a client
    with room may be refused, and how many capacities may be admitted in addition. A new primary is
    `found` within this many seconds."""
    record(test, name, max(extra.values()), capacities, max(waited.values()), found + lock_out)
    for who, seconds in waited.items():
        # A bucket that is never leased does not have to wait until its shard has learned.
        allowed = found + (lock_out if "leased" in who else 0)
        test.assertLessEqual(seconds, allowed + SLACK_SECONDS, f"{name}: {who} has room")
