"""Requests that take long, or whose clients have gone, take nothing from others: `--capacity auto` has
room for those, and what has never reached the service is given back."""

import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import Sidecar, free_port, until
from upstreams import Upstream

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
IN_PROGRESS = "headgate_proxy_in_flight"


class Endless(unittest.TestCase):
    def start(self, *args):
        """The service answers `/hang` never, `/slow` after half a second, and everything else at
        once. It has a thread for each connection."""
        self.released = threading.Event()
        self.addCleanup(self.released.set)
        self.ended = []

        def serve(connection, head):
            if head.startswith("GET /hang"):
                self.ended.append(connection.recv(1))
                return False
            if head.startswith("GET /slow"):
                self.released.wait(0.5)
            connection.sendall(OK)
            return True

        self.upstream = Upstream(self, serve)
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=args, capacity="auto"))

    def hang(self, client, count):
        """Requests without an answer."""
        for _ in range(count):
            connection = self.enterContext(self.sidecar.connect())
            connection.sendall(f"GET /hang HTTP/1.1\r\nHost: a\r\nX-Client-Id: {client}\r\n\r\n".encode())
            yield connection

    def hangs(self, count):
        return sum(head.startswith("GET /hang") for head in self.upstream.heads) == count

    def get(self, client, path="/"):
        return self.sidecar.request("GET", path, headers={"X-Client-Id": client})[0]

    def test_one_client_with_long_polls_locks_nobody_out(self):
        self.start()
        _ = list(self.hang("hog", 20))
        until(lambda: self.hangs(20), 10, "the service has them")
        answers = [self.get(name) for _ in range(40) for name in ("ann", "bob", "hog")]
        self.assertEqual(answers.count(200), 120, "the client of the long polls, too")

    def test_requests_of_clients_that_close_are_cancelled(self):
        self.start()
        for client in range(16):
            for connection in list(self.hang(f"client-{client}", 1)):
                until(lambda client=client: self.hangs(client + 1), 10, "the service has it")
                connection.close()
        until(lambda: len(self.ended) == 16, 5, "the service has lost them")
        self.assertEqual(self.sidecar.metric(IN_PROGRESS), 0)
        until(lambda: self.sidecar.metric("headgate_upstream_in_flight") == 0, 5, "the service may have ended them")
        self.assertEqual(self.get("ann"), 200)

    def test_requests_of_clients_that_may_still_read_go_on(self):
        self.start("--abandoned", "finish")
        for connection in list(self.hang("ann", 1)):
            until(lambda: self.hangs(1), 10, "the service has it")
            connection.close()
        self.assertEqual([self.get("ann") for _ in range(20)], [200] * 20)
        self.assertEqual(self.sidecar.metric(IN_PROGRESS), 1)

    def test_a_slow_service_that_is_idle_refuses_nobody_after_a_start(self):
        self.start()
        with ThreadPoolExecutor(60) as pool:
            answers = list(pool.map(lambda _: self.get("ann", "/slow"), range(150)))
        self.assertEqual(answers.count(200), 150, "60 at once, and the first limit is 16")

    def test_what_never_reached_the_service_is_given_back(self):
        sidecar = self.enterContext(Sidecar(free_port(), args=("--cycle", "1h"), capacity=3))
        answers = [sidecar.request("GET", "/", headers={"X-Client-Id": "ann"})[0] for _ in range(10)]
        self.assertEqual(answers, [502] * 10, "not 429")


if __name__ == "__main__":
    unittest.main()
