"""A client asks for one new key after the other. The cost is bounded in the instance, which has a
fixed number of places for keys, and in Redis, where every key expires."""

import threading
import time
import unittest

from fleet import FleetTest, decided_alone
from harness import resident_bytes, until, wait
from load import Load, check
from resp import Replies, encode

KEYS = 250_000
# The number of keys that an instance follows, over all its event loops.
FOLLOWED_MAX = 65_536
WORKERS, BATCH = 4, 500
# Enough to use every place once: a loop that has any connection has half of the places, and a
# quarter of these keys.
FIRST_KEYS = 150_000
# A bucket that got one request is full again after 4 s.
RATE, PERIOD_S, BURST = 15, 60, 10
FULL_AGAIN_SECONDS, LEASE_SECONDS = PERIOD_S / RATE, 2
HOT_RATE = 1000
RULES = f"""domain: edge
descriptors:
  - key: hot
    rate_limit: {{requests_per_unit: {HOT_RATE}, unit: second, algorithm: token_bucket}}
"""
# Scans all keys by name: how many there are, the longest life, and whether one never expires.
LOOK = """
local cursor, count, longest, endless = '0', 0, 0, 0
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', 'hg:{t|*', 'COUNT', 10000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    local life = redis.call('PTTL', key)
    count = count + 1
    if life > longest then longest = life end
    if life == -1 then endless = endless + 1 end
  end
until cursor == '0'
return {count, longest, endless}
"""
MEBIBYTE = 1 << 20


class Flood(FleetTest):
    RULES = RULES

    def flood(self, connections, first, keys):
        """Sends one request for each of this many keys; returns how many passed."""
        passed = [0] * WORKERS

        def run(worker):
            connection = connections[worker]
            replies = Replies(connection)
            for begin in range(first + worker * BATCH, first + keys, WORKERS * BATCH):
                names = range(begin, min(begin + BATCH, first + keys))
                connection.sendall(b"".join(encode("CL.THROTTLE", f"flood{n}", str(BURST - 1), str(RATE), str(PERIOD_S)) for n in names))
                passed[worker] += sum(reply[0] == 0 for reply in replies.take(len(names)))

        threads = [threading.Thread(target=run, args=(worker,)) for worker in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(passed)

    def redis_bytes(self):
        text = self.redis.command("INFO", "memory")
        return int(next(line for line in text.splitlines() if line.startswith("used_memory:")).split(":")[1])

    def test_a_flood_of_unique_keys_takes_bounded_space_in_instance_and_store(self):
        instance = self.instance()
        # Used in both floods, so that the loops that get the floods know these keys already.
        connections = [self.enterContext(instance.connect()) for _ in range(WORKERS)]
        for connection in connections:
            connection.settimeout(30)
        self.assertEqual(self.flood(connections, 0, FIRST_KEYS), FIRST_KEYS)
        until(lambda: self.redis.command("DBSIZE") == "1", 30, "only the list of instances is stored")
        resident, stored = resident_bytes(instance), self.redis_bytes()

        hot = self.enterContext(Load([instance], {"hot": check("hot", "hot")}, batch=5, pause=0.01))
        wait(1)
        hot.take_modes()
        began = time.monotonic()
        self.assertEqual(self.flood(connections, FIRST_KEYS, KEYS), KEYS)
        took = time.monotonic() - began
        modes = hot.take_modes()["hot"]
        hot.stop()

        count, longest_ms, endless = map(int, self.redis.command("EVAL", LOOK, "0", seconds=30).split())
        self.assertGreater(count, min(KEYS, KEYS / took * FULL_AGAIN_SECONDS) / 2, "the flood was too slow")
        self.assertEqual(endless, 0)
        self.assertLessEqual(longest_ms, 1000 * (FULL_AGAIN_SECONDS + LEASE_SECONDS))
        # In the instance nothing grows, and the key that is asked for often keeps its place.
        self.assertLess(resident_bytes(instance) - resident, 4 * MEBIBYTE)
        turned_away = sum(instance.metric(f"headgate_lease_keys_{how}_total") for how in ("evicted", "not_followed"))
        self.assertGreaterEqual(turned_away, FIRST_KEYS + KEYS - FOLLOWED_MAX)
        self.assertGreater(modes["leased"], 0.9 * sum(modes.values()), modes)
        self.assertEqual(decided_alone([instance]), 0)
        self.assertEqual(instance.metric('headgate_store_calls_total{outcome="refused"}'), 0)
        # In Redis every key expires.
        until(lambda: self.redis.command("DBSIZE") == "1", 30, "only the list of instances is stored")
        self.assertLess(self.redis_bytes() - stored, MEBIBYTE)


if __name__ == "__main__":
    unittest.main()
