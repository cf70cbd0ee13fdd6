"""Quiet, obedient, inflating and crowded clients share a pool with the default settings, but for a short
cycle. Each case has a sidecar of its own, and all of them run at the same time."""

import http.client
import random
import threading
import time
import unittest

from harness import Sidecar, wait
from upstreams import Upstream

CYCLE = 2  # seconds


class Client:
    """Asks until the test ends. `think` returns the pause in seconds after each answer."""

    def __init__(self, name, think):
        self.name = name
        self.think = think
        self.asked = self.passed = self.overloads = 0
        self.errors = []

    def run(self, port, ends):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            while time.monotonic() < ends:
                connection.request("GET", "/", headers={"X-Client-Id": self.name})
                response = connection.getresponse()
                response.read()
                self.asked += 1
                self.passed += response.status == 200
                self.overloads += response.status == 503
                pause = self.think(response)
                if pause is None:
                    break
                wait(min(pause, max(0, ends - time.monotonic())))
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            self.errors.append(error)


def at_random(per_second, seed):
    """Requests at random times (Poisson)."""
    numbers = random.Random(seed)
    next_at = [time.monotonic()]

    def think(_):
        next_at[0] += numbers.expovariate(per_second)
        return max(0, next_at[0] - time.monotonic())

    return think


def storm(_):
    return 0.004


def once(_):
    return None


def obeys(response):
    return int(response.headers["Retry-After"]) if response.status == 429 else 0


def obeys_remaining(response):
    """Stops as soon as `r` is 0, for `t` seconds."""
    words = dict(word.split("=") for word in response.headers["RateLimit"].split(";")[1:])
    if response.status == 200 and int(words["r"]) > 0:
        return 0
    return max(1, int(words["t"]))


class Shares(unittest.TestCase):
    def start(self, capacity, *args, cycle=CYCLE, work=lambda: None):
        def serve(connection, _):
            work()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True

        upstream = Upstream(self, serve)
        return self.enterContext(Sidecar(upstream.port, capacity=capacity, args=("--cycle", f"{cycle}s", *args)))

    def run_for(self, seconds, *cases):
        """Runs the clients of each (sidecar, clients). They count from now on."""
        ends = time.monotonic() + seconds
        threads = []
        for sidecar, clients in cases:
            for client in clients:
                client.asked = client.passed = client.overloads = 0
                threads.append(threading.Thread(target=client.run, args=(sidecar.port, ends)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _, clients in cases:
            for client in clients:
                self.assertEqual(client.errors, [], client.name)

    def known(self, *names):
        return [Client(name, once) for name in names]

    def test_each_gets_its_share_whatever_the_others_do(self):
        # Even shares of 100 in a cycle. Three ask for half of that, and one for all it can get.
        quiet = [Client(f"quiet{i}", at_random(50 / CYCLE, i)) for i in range(3)]
        storming = Client("storm", storm)
        # Even shares of 10. Two that the pool knows are silent.
        alone = Client("B", obeys)
        obedient, greedy = Client("B", obeys), Client("C", storm)
        looking, rival = Client("B", obeys_remaining), Client("C", storm)
        # B wants 20 in a cycle, and C sends 500 attempts.
        modest, inflating = Client("B", at_random(20 / CYCLE, 9)), Client("C", storm)
        few = [(self.start(40), clients) for clients in ([alone], [obedient, greedy], [looking, rival], [modest, inflating])]
        # One more than there are requests in a cycle.
        crowd = [Client(f"client{i}", lambda _: 0.05) for i in range(11)]
        cases = [(self.start(400), [*quiet, storming]), *few, (self.start(10, cycle=1), crowd)]

        self.run_for(1, *((sidecar, self.known("A", "D")) for sidecar, _ in few))
        self.run_for(2 * CYCLE, *cases)
        self.run_for(3 * CYCLE, *cases)

        asked, passed = sum(c.asked for c in quiet), sum(c.passed for c in quiet)
        self.assertGreater(asked, 300, "the machine is too slow")
        self.assertLessEqual(asked - passed, 0.02 * asked, "of requests within the even share")
        self.assertGreaterEqual(storming.passed + passed, 0.8 * 3 * 400)
        self.assertGreaterEqual(alone.passed, 0.8 * 3 * 40)
        for one, other in ((obedient, greedy), (looking, rival)):
            self.assertGreaterEqual(one.passed, 0.75 * other.passed)
            self.assertGreaterEqual(one.passed + other.passed, 0.8 * 3 * 40)
        self.assertGreaterEqual(modest.passed, 0.7 * modest.asked)
        for client in crowd:  # 6 cycles of 10
            self.assertGreaterEqual(client.passed, 4, client.name)
            self.assertLessEqual(client.passed, 7, client.name)

    # All of a cycle at once would fill the queue in front of the service.
    def test_twice_the_load_leaves_a_service_what_it_can_do(self):
        rate, workers = 100, threading.Semaphore(8)

        def work():
            with workers:
                wait(8 / rate)

        crowd = [Client(f"client{i}", lambda _: 0.1) for i in range(60)]
        sidecar = self.start(rate * CYCLE, work=work)
        self.run_for(CYCLE, (sidecar, crowd))
        self.run_for(3 * CYCLE, (sidecar, crowd))
        self.assertGreater(sum(client.asked for client in crowd), 1.5 * 3 * rate * CYCLE, "the machine is too slow")
        self.assertEqual(sum(client.overloads for client in crowd), 0)
        self.assertGreaterEqual(sum(client.passed for client in crowd), 0.9 * 3 * rate * CYCLE)


if __name__ == "__main__":
    unittest.main()
