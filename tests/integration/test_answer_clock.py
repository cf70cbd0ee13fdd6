"""Answers state the time of day of the machine, also after it was wrong at the start and has been set.
Decisions do not follow such a step."""

import http.client
import socket
import tempfile
import time
import unittest
from email.utils import parsedate_to_datetime

from clocks import ShiftedClock
from harness import Headgate, free_port
from resp import Replies, encode
from upstreams import Upstream

HOURS = 2 * 3600


class AnyCommand(Headgate):
    def __init__(self, command, *args, env):
        self.COMMAND = command
        super().__init__(*args, env=env)


class AnswerClock(unittest.TestCase):
    def start(self, command, *args):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.clock = ShiftedClock(self, folder)
        self.clock.set(time_of_day=-HOURS)
        return self.enterContext(AnyCommand(command, *args, env=self.clock.env))

    def check(self, server, ask):
        """`ask(server)` returns the stated time of each kind of answer, in seconds since the epoch."""
        for behind in (HOURS, 0):
            self.clock.set(time_of_day=-behind)
            for name, stated in ask(server).items():
                self.assertAlmostEqual(stated, time.time() - behind, delta=60, msg=f"{name}, {behind} s behind")

    def date(self, server, status, path="/", **fields):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", path, headers=fields)
        response = connection.getresponse()
        response.read()
        connection.close()
        self.assertEqual(response.status, status)
        return parsedate_to_datetime(response.headers["Date"]).timestamp()

    def date_of_raw(self, server, request):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(request)
            head = connection.makefile("rb").read().decode().split("\r\n\r\n")[0]
        date = next(line for line in head.split("\r\n") if line.lower().startswith("date:"))
        return parsedate_to_datetime(date.split(":", 1)[1]).timestamp()

    def test_a_server(self):
        def ask(server):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
                connection.sendall(encode("TIME"))
                seconds, microseconds = map(int, Replies(connection).next())
            self.assertLess(microseconds, 1_000_000)
            return {"TIME": seconds, "healthz": self.date(server, 200, "/healthz")}

        self.check(self.start("serve"), ask)

    def test_a_sidecar_without_an_upstream_that_answers(self):
        sidecar = self.start(
            "sidecar", "--upstream", f"http://127.0.0.1:{free_port()}", "--capacity", "1000000", "--rule", "client=bob: 1/day"
        )

        def ask(server):
            circles = {"Via": ", ".join(["1.1 headgate"] * 8), "X-Client-Id": "ann"}
            return {
                "the upstream is away": self.date(server, 502, **{"X-Client-Id": "ann"}),
                "goes in circles": self.date(server, 508, **circles),
                "no request": self.date_of_raw(server, b"nonsense\r\n\r\n"),
                "over a rule": self.date(server, 429, **{"X-Client-Id": "bob"}),
            }

        self.date(sidecar, 502, **{"X-Client-Id": "bob"})
        self.check(sidecar, ask)

    def test_a_sidecar_that_is_full(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True

        upstream = Upstream(self, serve)
        sidecar = self.start("sidecar", "--upstream", f"http://127.0.0.1:{upstream.port}", "--capacity", "1", "--cycle", "60s")

        def refused(server):
            return {"over the share": self.date(server, 429, **{"X-Client-Id": "ann"})}

        self.date(sidecar, 200, **{"X-Client-Id": "ann"})
        self.check(sidecar, refused)


if __name__ == "__main__":
    unittest.main()
