"""Sidecars that share one pool through a store, the worked example of the guide, and load that is
skewed over the replicas."""

import http.client
import threading
import unittest

from harness import Sidecar, until, wait
from upstreams import Upstream

CAPACITY = 40
REPLICAS = 3
DEMANDS = {"A": (2, 3, 0), "B": (15, 15, 15), "C": (10, 50, 50), "D": (10, 10, 5)}
CAPACITIES = {"A": (10, 5, 3, 1), "B": (10, 15, 11, 12), "C": (10, 10, 16, 22), "D": (10, 10, 10, 5)}
# The replica of a client's nth request: A and D come to one replica, B mostly, C to all.
PLACES = {"A": (0,), "B": (1, 1, 1, 0), "C": (0, 1, 2), "D": (2,)}
# Requests that may be refused in a cycle because the machine was too slow for a round in 250 ms.
TOLERANCE = 2
# The skewed load: clients, the replica that each asks, and its pause in seconds after each answer.
GREEDY, HALF_GREEDY, MODEST = "greedy", "half greedy", "modest"
SKEWED = ((GREEDY, 0, 0.002), (GREEDY, 0, 0.002), (GREEDY, 1, 0.002), (HALF_GREEDY, 1, 0.005), (HALF_GREEDY, 2, 0.005), (MODEST, 2, 0.01))


class Load:
    """Clients that ask for more than their shares all the time, until it is stopped."""

    def __init__(self, sidecars, clients=SKEWED):
        self.passed = {client: 0 for client, _, _ in clients}
        self.asked = 0
        self.errors = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(c, sidecars[place].port, pause)) for c, place, pause in clients]
        for thread in self._threads:
            thread.start()

    def _run(self, client, port, pause):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            while not self._stop.is_set():
                connection.request("GET", "/", headers={"X-Client-Id": client})
                response = connection.getresponse()
                response.read()
                with self._lock:
                    self.asked += 1
                    self.passed[client] += response.status == 200
                wait(pause)
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            self.errors.append(error)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class SidecarFleet(unittest.TestCase):
    def start(self, store, *args, replicas=REPLICAS, capacity=CAPACITY):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True

        self.upstream = Upstream(self, serve)
        words = ("--scope", "fleet", "--store", store, *args)
        self.sidecars = [self.enterContext(Sidecar(self.upstream.port, args=words, capacity=capacity)) for _ in range(replicas)]

    def ask(self, client, count=1, places=None):
        """How many of these requests passed."""
        places = places or PLACES[client]
        passed = 0
        for i in range(count):
            sidecar = self.sidecars[places[i % len(places)]]
            connection = http.client.HTTPConnection("127.0.0.1", sidecar.port, timeout=10)
            connection.request("GET", "/", headers={"X-Client-Id": client})
            response = connection.getresponse()
            response.read()
            connection.close()
            passed += response.status == 200
        return passed

    def metric(self, name, places=None):
        places = range(len(self.sidecars)) if places is None else places
        return sum(self.sidecars[place].metric(name) or 0 for place in places)

    def capacities(self, place):
        return {client: self.sidecars[place].metric(f'headgate_share_capacity{{client="{client}"}}') for client in "ABCD"}

    def cycle(self, place=0):
        return self.sidecars[place].metric('headgate_share_cycles_total{reason="due"}')

    def has_capacities(self, number):
        """A replica shows what it saw in its last round, so some may not know the last reports of others."""
        expected = {client: CAPACITIES[client][number] for client in "ABCD"}
        return any(self.capacities(place) == expected for place in range(REPLICAS))

    def worked_example(self, seconds, cycles=4):
        """Up to the shares of this cycle; cycles last `seconds`."""
        for client in "ABCD":  # all are known before the first full cycle
            self.assertEqual(self.ask(client), 1)
        for number in range(cycles):
            until(lambda number=number: self.cycle() == number, 3 * seconds, f"cycle {number + 1} begins")
            # Until all replicas have reported what they were asked in the last cycle.
            until(lambda number=number: self.has_capacities(number), seconds, f"the capacities of cycle {number + 1}")
            if number == cycles - 1:
                return
            early = self.metric("headgate_fleet_pool_early_denials_total")
            passed = {client: 1 if number == 0 else 0 for client in "ABCD"}
            for client in "ABCD":
                passed[client] += self.ask(client, DEMANDS[client][number] - passed[client])
            early = self.metric("headgate_fleet_pool_early_denials_total") - early
            self.assertEqual(self.cycle(), number, "the machine is too slow for this cycle")
            self.assertLessEqual(early, TOLERANCE)
            self.assertLessEqual(sum(passed.values()), CAPACITY)
            for client in "ABCD":
                most = min(DEMANDS[client][number], CAPACITIES[client][number])
                self.assertLessEqual(passed[client], most, f"{client} in cycle {number + 1}")
                self.assertGreaterEqual(passed[client], most - early, f"{client} in cycle {number + 1}")

    def skewed_load(self, cycles):
        """In each cycle the fleet admits the capacity and no more, and who asks for an even share has it.
        The capacity is CAPACITY; the cycles are short."""
        self.assertEqual(self.cycles(), 0)
        with Load(self.sidecars) as load:
            until(lambda: self.cycles() >= cycles, 60, f"{cycles} cycles have ended")
        begun = int(self.cycles()) + 1
        self.assertEqual(load.errors, [])
        self.assertEqual(self.metric("headgate_fleet_pool_alone_requests_total"), 0)
        total = sum(load.passed.values())
        self.assertGreater(load.asked, 3 * total, "the load was too low")
        self.assertLessEqual(total, begun * CAPACITY, load.passed)
        self.assertGreaterEqual(total, 0.9 * (begun - 1) * CAPACITY, load.passed)
        # Each has a third. In the first cycle, the first to come may have used what they lend later.
        for client, passed in load.passed.items():
            self.assertGreaterEqual(passed, 0.9 * (begun - 2) * (CAPACITY // 3), (client, load.passed))

    def cycles(self):
        """How many have ended, as the replica says that knows most."""
        return max(self.cycle(place) for place in range(len(self.sidecars)))
