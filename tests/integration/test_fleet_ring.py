"""A ring gets a longer list of servers: the keys that move begin again with full buckets."""

import time
import unittest

from faults import record
from fleet import FleetTest
from harness import RedisServer, wait
from history import key_of
from load import Load, check, worst_excess
from toll import BURST, RATE, RULES, longest_refused


class Ring(FleetTest):
    RULES = RULES

    def fleet_of(self, servers):
        store = "redis+ring://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)
        return [self.instance(store=store) for _ in range(2)]

    def test_a_server_is_added(self):
        servers = [self.redis, self.enterContext(RedisServer()), self.enterContext(RedisServer())]
        old, new = self.fleet_of(servers[:2]), self.fleet_of(servers)
        values = [f"value{i}" for i in range(60)]
        moved = []
        for value in values:
            new[0].check("edge", hot=value)
            if servers[2].command("EXISTS", key_of("hot", value)) == "1":
                moved.append(value)
        self.assertLess(len(moved), 0.5 * len(values), "a third is expected to move")
        hot = {"hot": check("hot", moved[0])}
        room = {value: check("exact", value) for value in values}
        with Load(old, hot) as before, Load(old, room, batch=1, pause=0.01) as room_before:
            wait(1)
            # The instances take up the new list one after the other.
            began = time.monotonic()
            with Load(new, hot) as after, Load(new, room, batch=1, pause=0.01) as room_after:
                wait(0.5)
                before.stop()
                room_before.stop()
                apart = time.monotonic() - began
                wait(1)
                after.stop()
                room_after.stop()
        batches = sorted(before.batches["hot"] + after.batches["hot"])
        over = worst_excess(batches, BURST, RATE).excess / BURST
        refused = max(longest_refused(sorted(load.batches[value])) for load in (room_before, room_after) for value in values)
        record(self, "ring_grown", over, 1 + RATE * apart / BURST, refused, 0)


if __name__ == "__main__":
    unittest.main()
