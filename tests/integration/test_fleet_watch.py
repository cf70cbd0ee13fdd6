"""The log events and metrics of a fleet: each changes for its own cause, and for no other."""

import re
import unittest

from fleet import FleetTest
from harness import Headgate, RedisServer, until, wait

RULES = """domain: edge
descriptors:
  - key: hot
    rate_limit: {requests_per_unit: 1000, unit: minute, algorithm: token_bucket}
  - key: second
    rate_limit: {requests_per_unit: 1000, unit: second, algorithm: fixed_window}
  - key: deny
    rate_limit: {requests_per_unit: 1000, unit: minute, algorithm: token_bucket, on_store_failure: deny}
  - key: allow
    rate_limit: {requests_per_unit: 1000, unit: minute, algorithm: token_bucket, on_store_failure: allow}
"""
CALL_OUTCOMES = ("answered", "unavailable", "timed_out", "aborted", "denied", "refused", "failed")
LEASED = ("granted", "spent", "returned", "expired")


class FleetWatch(FleetTest):
    RULES = RULES
    # Short timeouts, so that a stalled store is noticed soon.
    TIMES = ("--store-timeout", "300ms", "--store-connect-timeout", "2s")

    def alone(self, *args, store=None):
        """One loop, so that all requests share its leases and breaker."""
        store = store or f"redis://127.0.0.1:{self.redis.port}"
        return self.enterContext(Headgate("--rules", self.rules, "--store", store, "--threads", "1", *self.TIMES, *args))

    @staticmethod
    def mode(instance, rule="hot"):
        return instance.check("edge", **{rule: "k"})[1]["x-ratelimit-mode"]

    def until_asked(self, instance):
        until(lambda: self.mode(instance) == "exact", 10, "the store is asked")

    @staticmethod
    def leased(instance):
        """Leased requests by event, and the number held."""
        events = {event: instance.metric(f'headgate_leased_requests_total{{event="{event}"}}') for event in LEASED}
        return {**events, "held": instance.metric("headgate_lease_requests_held")}

    @staticmethod
    def calls(instance):
        return {outcome: instance.metric(f'headgate_store_calls_total{{outcome="{outcome}"}}') for outcome in CALL_OUTCOMES}

    @staticmethod
    def lines(instance, event):
        return re.findall(rf"^\S+ (\w+) {re.escape(event)} ?(.*)$", instance.errors(), re.MULTILINE)

    # ---- Metrics

    def test_leased_requests_are_counted_by_their_outcome(self):
        instance = self.alone()
        self.until_asked(instance)
        self.assertEqual(self.leased(instance), dict.fromkeys((*LEASED, "held"), 0))
        until(lambda: self.mode(instance) == "leased", 10, "the key is leased")
        for _ in range(20):
            self.mode(instance)
        by_lease = instance.metric('headgate_shared_decisions_total{mode="leased"}')
        now = self.leased(instance)
        self.assertGreaterEqual(by_lease, 20)
        asks = instance.metric("headgate_lease_asks_total")
        self.assertGreaterEqual(asks, 1)
        # The request that asks for a lease is decided by the store, and counts as exact.
        self.assertGreaterEqual(now["spent"], by_lease)
        self.assertLessEqual(now["spent"], by_lease + asks)
        self.assertGreater(now["held"], 0)
        self.assertEqual(now["granted"], now["spent"] + now["held"])

        # Without further requests the rest goes back, in one message.
        until(lambda: self.leased(instance)["held"] == 0, 10, "nothing is held any more")
        idle = self.leased(instance)
        self.assertEqual(idle["expired"], 0)
        self.assertGreater(idle["returned"], 0)
        self.assertEqual(idle["granted"], idle["spent"] + idle["returned"])
        self.assertGreater(instance.metric("headgate_lease_asks_total"), asks)

    def stall(self, instance, rule, event):
        """The store stands still for longer than a lease of this rule lives."""
        until(lambda: self.mode(instance, rule) == "leased", 10, "the key is leased")
        before = self.leased(instance)
        self.assertGreater(before["held"], 0)
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        wait(3)
        self.assertEqual(self.leased(instance)["returned"], before["returned"])
        self.redis.resume()
        until(lambda: self.leased(instance)["held"] == 0, 10, "nothing is held any more")
        after = self.leased(instance)
        self.assertEqual(after["granted"], after["spent"] + after["returned"] + after["expired"])
        for name in ("returned", "expired"):
            (self.assertGreater if name == event else self.assertEqual)(after[name], before[name], name)

    def test_leases_that_end_while_the_store_stalls_go_back_afterwards(self):
        self.stall(self.alone(), "hot", "returned")

    def test_leases_that_outlive_their_window_expire(self):
        """The next window is full: nothing can go back to it."""
        self.stall(self.alone(), "second", "expired")

    def test_calls_are_counted_by_their_outcome(self):
        instance = self.alone("--sharing", "exact", "--store-breaker-failures-in-row", "2")
        self.until_asked(instance)
        names = ("retries", "redirects", "disconnects", "breaker_opened")

        def counts():
            return {name: instance.metric(f"headgate_store_{name}_total") for name in names}

        self.assertEqual(counts(), dict.fromkeys(names, 0))
        before = self.calls(instance)
        self.assertEqual({name for name, count in before.items() if count}, {"answered"})
        self.assertEqual(self.mode(instance), "exact")
        self.assertGreater(self.calls(instance)["answered"], before["answered"])

        # A connection that ends with no call in flight.
        self.redis.command("CLIENT", "KILL", "TYPE", "normal")
        until(lambda: counts()["disconnects"] == 1, 10, "the connection has ended")
        self.until_asked(instance)
        self.assertEqual(counts(), {**dict.fromkeys(names, 0), "disconnects": 1})

        # A server that became a replica reports that it did nothing.
        self.redis.command("REPLICAOF", "127.0.0.1", "1")
        self.assertEqual(self.mode(instance), "local")
        self.assertGreaterEqual(counts()["retries"], 1)
        self.assertGreater(self.calls(instance)["unavailable"], 0)
        self.redis.command("REPLICAOF", "NO", "ONE")
        self.until_asked(instance)

        # A server that stalls.
        before, opened = self.calls(instance), counts()["breaker_opened"]
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        for _ in range(2):
            self.assertEqual(self.mode(instance), "local")
        self.assertEqual(counts()["breaker_opened"], opened + 1)
        self.assertEqual(instance.metric("headgate_store_breakers_open"), 1)
        self.assertGreaterEqual(self.calls(instance)["timed_out"], before["timed_out"] + 2)
        self.redis.resume()
        self.until_asked(instance)
        self.assertEqual(instance.metric("headgate_store_breakers_open"), 0)
        self.assertEqual(counts()["redirects"], 0)

    def test_pipelined_commands_share_calls_to_the_store(self):
        instance = self.alone("--sharing", "exact")
        self.until_asked(instance)
        commands = {
            "CL.THROTTLE": [f"CL.THROTTLE k{i} 100 1 3600" for i in range(10)],
            "HG.CHECK": [f"HG.{'PEEK' if i % 3 == 2 else 'CHECK'} edge ENTRIES 1 hot k{i}" for i in range(10)],
        }
        for name, lines in commands.items():
            with self.subTest(name), instance.connect() as connection:
                before = [instance.metric(f"headgate_store_batch_calls_{part}") for part in ("sum", "count")]
                connection.sendall("".join(line + "\r\n" for line in (*lines, "PING")).encode())
                reader = connection.makefile("rb")
                while reader.readline() != b"+PONG\r\n":
                    pass
                after = [instance.metric(f"headgate_store_batch_calls_{part}") for part in ("sum", "count")]
                self.assertGreaterEqual(after[0] - before[0], 10)
                # Data may arrive in two reads, and the heartbeat adds calls.
                self.assertLessEqual(after[1] - before[1], 4)

    # ---- The log

    def test_the_log_reports_when_a_server_becomes_unreachable_and_recovers(self):
        instance = self.alone("--sharing", "exact", "--store-breaker-failures-in-row", "2")
        self.until_asked(instance)
        self.assertEqual(self.lines(instance, "store.unreachable") + self.lines(instance, "store.recovered"), [])
        server = f"server=127.0.0.1:{self.redis.port} loop=0"
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        for _ in range(4):
            self.mode(instance)
        self.assertEqual(
            self.lines(instance, "store.unreachable"), [("warning", f'{server} effect="on_store_failure decides its limits"')]
        )
        self.redis.resume()
        self.until_asked(instance)
        self.assertEqual(self.lines(instance, "store.recovered"), [("info", server)])

    def test_the_log_reports_the_begin_and_end_of_degraded_mode_once(self):
        # The breaker never opens, so only the decisions reveal the outage.
        never = ("--store-breaker-failures-in-row", "1000000")
        instance = self.alone("--sharing", "exact", *never)
        self.until_asked(instance)
        wait(1.5)  # one check by the watch, with no decision yet
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        modes = {"hot": "local", "deny": "closed", "allow": "open"}
        for rule, mode in modes.items():
            self.assertEqual(self.mode(instance, rule), mode)
        until(lambda: len(self.lines(instance, "degraded_mode.entered")) == 3, 5, "the log says so")
        said = self.lines(instance, "degraded_mode.entered")
        self.assertEqual({re.search(r"mode=(\w+)", words).group(1) for _, words in said}, set(modes.values()))
        for _ in range(4):
            self.mode(instance)
        self.assertEqual(self.lines(instance, "degraded_mode.left"), [])
        self.redis.resume()

        def is_over():
            self.mode(instance)
            return len(self.lines(instance, "degraded_mode.left")) == 3

        until(is_over, 20, "the log says that it is over")
        over = dict(re.search(r"mode=(\w+) decisions=(\d+)", words).groups() for _, words in self.lines(instance, "degraded_mode.left"))
        self.assertGreaterEqual(int(over.pop("local")), 5)
        self.assertEqual(over, {"closed": "1", "open": "1"})
        self.assertEqual(len(self.lines(instance, "degraded_mode.entered")), 3)
        self.assertEqual(self.lines(instance, "store.unreachable"), [])

    # ---- A store that may forget limits

    def test_a_store_that_may_evict_keys_causes_a_warning_or_is_refused(self):
        redis = self.enterContext(RedisServer("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))
        store = f"redis://127.0.0.1:{redis.port}"
        lenient = self.alone(store=store)
        self.until_asked(lenient)
        warned = self.lines(lenient, "store.eviction_not_ruled_out")
        self.assertEqual([level for level, _ in warned], ["warning"])
        self.assertIn(f"server=127.0.0.1:{redis.port} policy=allkeys-lru", warned[0][1])

        strict = self.alone("--strict-store", "yes", store=store)
        until(lambda: self.lines(strict, "store.disconnected"), 10, "the store is refused")
        self.assertIn("allkeys-lru", self.lines(strict, "store.disconnected")[0][1])
        self.assertEqual({self.mode(strict) for _ in range(5)}, {"local"})
        # The store is used as soon as it no longer evicts.
        redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.until_asked(strict)


if __name__ == "__main__":
    unittest.main()
