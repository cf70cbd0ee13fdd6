"""Secrets are never logged, not even at the level debug, and never shown by the server."""

import base64
import os
import tempfile
import unittest

from harness import Headgate, RedisServer, require_redis, until
from resp import Replies, encode

SECRETS = {
    "credential": "credential-e1f0",
    "store": "store-password-77ab",
    "partition": "partition-secret-93cd",
    "hash": "hash-secret-2b6e",
}
WRONG = "wrong-password-51aa"


class Secrets(unittest.TestCase):
    def setUp(self):
        require_redis()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def file(self, name):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SECRETS[name] + "\n")
        return path

    def test_the_log_and_the_answers_hold_none(self):
        redis = self.enterContext(RedisServer("--requirepass", SECRETS["store"]))
        server = self.enterContext(
            Headgate(
                *("--log-level", "debug", "--log-client-keys", "plain", "--rule", "user: 5/hour"),
                *("--credential-file", self.file("credential"), "--partition-key-secret-file", self.file("partition")),
                *("--store", f"redis://:{SECRETS['store']}@127.0.0.1:{redis.port}"),
                *("--hash-keys", "yes", "--hash-keys-secret-file", self.file("hash")),
                admin="127.0.0.1:0",
            )
        )
        until(lambda: server.request("GET", "/readyz")[0] == 200, 10, "the server is ready")
        answers = []
        with server.connect() as connection:
            replies = Replies(connection)
            for words in (
                ("AUTH", WRONG),
                ("AUTH", SECRETS["credential"]),
                ("HELLO", "2", "AUTH", "default", SECRETS["credential"]),
                ("INFO",),
                ("CLIENT", "LIST"),
                ("CONFIG", "GET", "*"),
            ):
                connection.sendall(encode(*words))
                answers.append(str(replies.next()))
        basic = base64.b64encode(f"admin:{SECRETS['credential']}".encode()).decode()
        for authorization in (f"Bearer {SECRETS['credential']}", f"Bearer {WRONG}", f"Basic {basic}"):
            for path in ("/v1/rules", "/metrics", "/nowhere"):
                answers.append(str(server.request("GET", path, headers={"Authorization": authorization})))
        answers.append(str(server.check(user="ann")))
        # The store goes away and comes back with another password.
        redis.kill()
        redis.args = ("--requirepass", "another")
        redis.start()
        until(lambda: "WRONGPASS" in server.errors(), 20, "the log says why the store refuses")
        server.stop()
        log = server.errors()
        self.assertIn("server.started", log)
        for text in (log, *answers):
            for secret in (*SECRETS.values(), WRONG, basic):
                self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main()
