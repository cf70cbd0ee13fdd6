"""Failed logins are counted by the status of their answers: in one sidecar and in two that share a store."""

import os
import socket
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import RedisServer, Sidecar, until
from upstreams import Upstream

RULES = """domain: default
descriptors:
  - key: user
    rate_limit: {requests_per_unit: 5, unit: hour, count: {status: [401, 403]}}
"""
MAPPINGS = """mappings:
- path: /login
  descriptors:
  - entries: [{key: user, header: X-User}]
- descriptors: []
"""
HEAD = "POST /login HTTP/1.1\r\nHost: a\r\nX-Client-Id: a\r\nX-User: {user}\r\nX-Password: {password}\r\nContent-Length: 0\r\n\r\n"


def serve(connection, head):
    """Compares a password, in a time that `X-Delay` says."""
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    time.sleep(float(fields.get("x-delay", 0)))
    status = "200 OK" if fields.get("x-password") == "right" else "401 Unauthorized"
    connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
    return True


class Logins(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.upstream = Upstream(self, serve)
        self.args = []
        for name, text in (("rules", RULES), ("mappings", MAPPINGS)):
            path = os.path.join(folder, f"{name}.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.args += [f"--{name}", path]

    def start(self, *args):
        return self.enterContext(Sidecar(self.upstream.port, args=(*self.args, *args)))

    def login(self, sidecar, user, password, delay=0):
        fields = {"X-Client-Id": user, "X-User": user, "X-Password": password, "X-Delay": str(delay)}
        return sidecar.request("POST", "/login", headers=fields)[0]

    def guess_at_once(self, sidecars, user, count):
        """The statuses of as many guesses, all of which come before the first answer."""
        with ThreadPoolExecutor(count) as pool:
            one = lambda i: self.login(sidecars[i % len(sidecars)], user, f"guess {i}", 0.3)
            return sorted(pool.map(one, range(count)))

    def log_in_often(self, sidecars, user, count):
        for i in range(count):
            self.assertEqual(self.login(sidecars[i % len(sidecars)], user, "right"), 200, f"login {i} of {user}")

    def check_all(self, sidecars):
        self.log_in_often(sidecars, "ann", 300)
        self.assertEqual(self.guess_at_once(sidecars, "bob", 30), 5 * [401] + 25 * [429])
        self.assertEqual(self.login(sidecars[0], "bob", "right"), 429, "his guesses are used up")
        # He fails in between, and the rest of his tries is right.
        for sidecar in sidecars:
            self.assertEqual(self.login(sidecar, "ann", "wrong"), 401)
        self.log_in_often(sidecars, "ann", 300)

    def test_one_sidecar(self):
        sidecar = self.start()
        self.check_all([sidecar])
        self.assertEqual(sidecar.metric('headgate_size_units_total{event="returned"}'), 600)
        self.assertEqual(sidecar.metric('headgate_size_units_total{event="lapsed"}'), 0)

    def test_two_sidecars_share_what_they_count(self):
        redis = self.enterContext(RedisServer())
        store = ("--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "2s")
        self.check_all([self.start(*store), self.start(*store)])

    def test_a_guesser_who_leaves_before_the_answer_is_counted(self):
        sidecar = self.start()
        for i in range(5):
            with sidecar.connect() as connection:
                connection.sendall(HEAD.format(user="bob", password="x").replace("\r\n\r\n", "\r\nX-Delay: 1\r\n\r\n").encode())
                until(lambda: len(self.upstream.heads) == i + 1, 5, "the guess is in progress")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.assertEqual(self.login(sidecar, "bob", "right"), 429)
        self.assertEqual(self.login(sidecar, "ann", "right"), 200)

    def test_a_service_that_is_away_locks_nobody_out(self):
        away = socket.create_server(("127.0.0.1", 0))
        port = away.getsockname()[1]
        away.close()
        sidecar = self.enterContext(Sidecar(port, args=self.args))
        for _ in range(20):
            self.assertIn(self.login(sidecar, "ann", "right"), (502, 503, 504))
        self.assertGreaterEqual(sidecar.metric('headgate_size_units_total{event="returned"}'), 20)

    def test_parallel_users_behind_one_key_use_nothing_up(self):
        sidecar = self.start()
        stop = time.monotonic() + 2
        refused = []

        def user():
            while time.monotonic() < stop:
                if self.login(sidecar, "office", "right", 0.02) != 200:
                    refused.append(time.monotonic())

        users = [threading.Thread(target=user) for _ in range(5)]
        for thread in users:
            thread.start()
        for thread in users:
            thread.join()
        self.assertEqual(refused, [])


if __name__ == "__main__":
    unittest.main()
