"""Users with rights, over the Redis protocol and HTTP: the logins of redis-cli and curl, passwords in
a file that changes, and guesses."""

import base64
import http.client
import os
import re
import socket
import tempfile
import time
import unittest

from harness import BINARY, Headgate, RedisServer, require, require_redis, run, until
from resp import Replies, encode


def hash_of(password):
    result = run(BINARY, "hash-password", input=password + "\n")
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


CHECK = ("CL.THROTTLE", "key", "100", "100", "60")
RESET = ("HG.RESET", "default", "ENTRIES", "1", "key", "k")


class Users(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ann, cls.ops, cls.eve = hash_of("apple"), hash_of("orange"), hash_of("elder")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(self.folder, "users")

    def write(self, *lines):
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(self.file + ".new", self.file)

    def serve(self, *more):
        if not os.path.exists(self.file):
            self.write(f"ann check {self.ann}", f"ops admin {self.ops}", f"eve read,refund {self.eve}")
        self.server = self.enterContext(Headgate("--rule", "key: 100/minute", "--users-file", self.file, *more))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(connection.close)
        replies = Replies(connection)

        def ask(*words):
            connection.sendall(encode(*words))
            return replies.next()

        return ask

    def get(self, path, login=None, body=None, scheme="Basic"):
        value = base64.b64encode(login.encode()).decode() if login and scheme == "Basic" else login
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        headers = {"Authorization": f"{scheme} {value}"} if login else {}
        if body:
            headers["Content-Type"] = "application/json"
        connection.request("POST" if body else "GET", path, body=body, headers=headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, response

    def metric(self, name):
        text = self.get("/metrics", "ops:orange")[1]
        match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(match.group(1))

    def test_a_file_that_names_nobody_and_a_pipe_are_refused(self):
        self.serve()
        ask = self.connect()
        self.assertEqual(ask("AUTH", "ops", "orange"), "OK")
        refused = 'headgate_user_reloads_total{result="refused"}'
        with open(self.file, "w", encoding="utf-8"):
            pass
        until(lambda: self.metric(refused) >= 1, 10, "the empty file is refused")
        os.mkfifo(self.file + ".pipe")
        os.rename(self.file + ".pipe", self.file)
        until(lambda: self.metric(refused) >= 2, 10, "the pipe is refused")
        self.assertNotIn("NOAUTH", str(ask(*RESET)), "the login stays valid")
        self.write(f"ops admin {self.ops}")
        until(lambda: self.metric('headgate_user_reloads_total{result="loaded"}') >= 1, 10, "the file is used again")

    def test_each_user_has_its_rights_over_the_redis_protocol(self):
        self.serve()
        ask = self.connect()
        self.assertIn("NOAUTH", str(ask(*CHECK)))
        self.assertEqual(ask("PING"), "PONG")
        self.assertIn("WRONGPASS", str(ask("AUTH", "ann", "orange")))
        self.assertEqual(ask("AUTH", "ann", "apple"), "OK")
        self.assertEqual(ask(*CHECK)[0], 0)
        self.assertIn("NOPERM User ann has no permissions to run the 'hg.reset' command", str(ask(*RESET)))
        self.assertIn("user=ann", ask("CLIENT", "INFO"))
        self.assertEqual(ask("AUTH", "ops", "orange"), "OK")
        self.assertNotIn("NOPERM", str(ask(*RESET)))
        self.assertEqual(ask("RESET"), "RESET")
        self.assertIn("NOAUTH", str(ask(*CHECK)))
        self.assertIn("server", ask("HELLO", "2", "AUTH", "ann", "apple"))
        self.assertEqual(ask(*CHECK)[0], 0)

    def test_before_a_login_the_answers_are_those_of_redis(self):
        """Each command on a connection of its own. Only PING is answered here and refused there."""
        require_redis()
        self.serve()
        commands = [
            "ECHO hi", "TIME", "SELECT 0", "INFO", "CLIENT SETNAME x", "CLIENT ID", "CLIENT LIST", "COMMAND",
            "COMMAND COUNT", "COMMAND DOCS", "CONFIG GET save", "DBSIZE", "ROLE", "MULTI", "EXEC", "DISCARD",
            "EXISTS a", "TTL a", "DEL a", "SCRIPT LOAD x", "RESET", "QUIT", "AUTH", "AUTH a b c", "AUTH ann wrong",
            "HELLO", "HELLO 2", "HELLO 3", "HELLO 9", "HELLO x", "HELLO 3 FOO", "HELLO 3 SETNAME x",
            "HELLO 3 AUTH ann wrong", "NOSUCH a", "TIME x", "CLIENT",
        ]  # fmt: skip

        def answers(port):
            found = {}
            for command in commands:
                with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                    connection.sendall(encode(*command.split()))
                    # The text of HELLO's error depends on the version of Redis.
                    reply = str(Replies(connection).next())
                    found[command] = reply.split()[:2] if command.startswith("HELLO") else reply
            return found

        with RedisServer("--requirepass", "secret") as redis_server:
            self.assertEqual(answers(self.server.port), answers(redis_server.port))

    def test_commands_behind_a_login_wait_for_it(self):
        self.serve()
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(connection.close)
        connection.sendall(encode("AUTH", "ann", "apple") + encode(*CHECK) + encode("AUTH", "ops", "orange") + encode("DBSIZE"))
        answers = Replies(connection).take(4)
        self.assertEqual(answers[0::2], ["OK", "OK"])
        self.assertEqual(answers[1][0], 0)
        self.assertEqual(answers[3], 1)

    def test_each_user_has_its_rights_over_http(self):
        self.serve()
        check = '{"descriptors":[{"entries":[{"key":"key","value":"k"}]}]}'
        for login, scheme in (("ann:apple", "Basic"), ("ann:apple", "Bearer")):
            self.assertEqual(self.get("/v1/check", login, check, scheme)[0], 200)
            status, text, _ = self.get("/v1/refund", login, check, scheme)
            self.assertEqual(status, 403)
            self.assertIn("the user 'ann' may not do this", text)
            self.assertIn("it needs the right 'refund'", text)
        self.assertEqual(self.get("/v1/check", None, check)[0], 401)
        self.assertEqual(self.get("/v1/check", "ann:pear", check)[0], 401)
        self.assertEqual(self.get("/metrics", "eve:elder")[0], 200)
        self.assertEqual(self.get("/v1/refund", "eve:elder", check)[0], 200)
        self.assertEqual(self.get("/v1/check", "eve:elder", check)[0], 403)
        self.assertEqual(self.get("/v1/reset", "eve:elder", check)[0], 403)
        self.assertEqual(self.get("/v1/reset", "ops:orange", check)[0], 200)
        self.assertEqual(self.get("/healthz")[0], 200)

    def test_one_connection_may_send_many_requests_with_its_login(self):
        self.serve()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        login = {"Authorization": "Basic " + base64.b64encode(b"eve:elder").decode()}
        for _ in range(20):
            connection.request("GET", "/metrics", headers=login)
            response = connection.getresponse()
            response.read()
            self.assertEqual(response.status, 200)
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer eve:wrong"})
        self.assertEqual(connection.getresponse().status, 401)
        connection.close()
        self.assertEqual(self.metric('headgate_logins_total{result="accepted"}'), 2)

    def test_redis_cli_and_curl_log_in(self):
        require("redis-cli", "curl")
        self.serve()
        words = ("redis-cli", "-p", str(self.server.port), "--user", "ann", "--pass", "apple", "--no-auth-warning")
        self.assertEqual(run(*words, *CHECK).stdout.splitlines()[0], "0")
        url = f"http://127.0.0.1:{self.server.port}/metrics"
        result = run("curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "-u", "eve:elder", url)
        self.assertEqual(result.stdout, "200")

    def test_guesses_are_limited_per_user_and_others_are_not_held_up(self):
        self.serve()
        check = '{"descriptors":[{"entries":[{"key":"key","value":"k"}]}]}'
        began = time.monotonic()
        statuses = [401]
        while statuses[-1] == 401 and len(statuses) < 100:
            statuses.append(self.get("/v1/check", f"ann:guess{len(statuses)}", check)[0])
        self.assertEqual(statuses[-1], 429)
        guesses = len(statuses) - 2
        self.assertGreaterEqual(guesses, 10)
        self.assertLessEqual(guesses, 10 + (time.monotonic() - began) / 6, "one more after each six seconds")
        status, _, response = self.get("/v1/check", "ann:apple", check)
        self.assertEqual(status, 429)
        self.assertIn(int(response.getheader("Retry-After")), range(1, 8))
        ask = self.connect()
        self.assertIn("too many failed logins", str(ask("AUTH", "ann", "apple")))
        self.assertEqual(ask("AUTH", "ops", "orange"), "OK")
        self.assertGreaterEqual(self.metric('headgate_logins_total{result="limited"}'), 2)

    def test_a_change_of_the_file_counts_at_once_and_a_bad_one_not(self):
        self.serve()
        ann, ops = self.connect(), self.connect()
        self.assertEqual(ann("AUTH", "ann", "apple"), "OK")
        self.assertEqual(ops("AUTH", "ops", "orange"), "OK")
        self.write("this is wrong")
        until(lambda: "users.refused" in self.server.errors(), 10, "the bad file is refused")
        self.assertEqual(ann(*CHECK)[0], 0)
        self.write(f"ops admin {self.ops}", "* check -")
        until(lambda: "users.loaded" in self.server.errors(), 10, "the new file is loaded")
        self.assertEqual(ann(*CHECK)[0], 0, "now anybody may check")
        self.assertIn("user=default", ann("CLIENT", "INFO"))
        self.assertIn("WRONGPASS", str(ann("AUTH", "ann", "apple")))
        self.assertNotIn("NOPERM", str(ops(*RESET)))

    def test_a_wrong_file_ends_the_start_and_says_which_line(self):
        self.write(f"ann check {self.ann}", "bob check hunter2")
        result = run(BINARY, "serve", "--users-file", self.file, "--listen", "127.0.0.1:0", "--admin-listen", "none")
        self.assertEqual(result.returncode, 2)
        self.assertIn("line 2", result.stderr)
        self.assertNotIn("hunter2", result.stderr)

    def test_hash_password_needs_a_password_that_nobody_sees(self):
        self.assertEqual(run(BINARY, "hash-password", input="").returncode, 2)
        result = run(BINARY, "hash-password", "hunter2", input="")
        self.assertEqual(result.returncode, 2)
        self.assertNotIn("hunter2", result.stderr)


if __name__ == "__main__":
    unittest.main()
