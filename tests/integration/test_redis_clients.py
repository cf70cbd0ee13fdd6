"""Unmodified third-party clients against the Redis protocol front."""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import unittest

import redis

from dynamodb import KEYS, NO_KEYS, Dynalite
from harness import BINARY, INTEGRATION, PATIENT, Headgate, RedisServer, require, require_redis, run, until
from resp import Replies
from zookeeper import ZooKeeperServer

RULES = ["--rule", "user: 5/hour", "--rule", "queue: 10/10s leaky_bucket queue"]


class RedisCli(unittest.TestCase):
    def setUp(self):
        require("redis-cli")
        self.server = self.enterContext(Headgate(*RULES))

    def cli(self, *words):
        return run("redis-cli", "-p", str(self.server.port), *words).stdout.split("\n")[:-1]

    def test_throttle_answers_the_documented_five_numbers(self):
        self.assertEqual(self.cli("CL.THROTTLE", "user123", "15", "30", "60"), ["0", "16", "15", "-1", "2"])

    def test_throttle_denies_after_the_burst(self):
        for remaining in "43210":
            self.assertEqual(self.cli("CL.THROTTLE", "k", "4", "1", "1000")[2], remaining)
        limited, limit, remaining, retry, reset = self.cli("CL.THROTTLE", "k", "4", "1", "1000")
        self.assertEqual((limited, limit, remaining), ("1", "5", "0"))
        self.assertTrue(990 <= int(retry) <= 1000 and 4990 <= int(reset) <= 5000, (retry, reset))

    def test_rules_by_both_protocol_versions(self):
        flat = self.cli("HG.CHECK", "default", "ENTRIES", "1", "user", "ann")
        self.assertEqual(flat[:2], ["allowed", "1"])
        typed = "\n".join(self.cli("-3", "HG.CHECK", "default", "ENTRIES", "1", "user", "ann"))
        self.assertRegex(typed, r"allowed.*(true|1)")
        self.assertRegex(typed, r"remaining.*3")

    def test_keys_may_hold_any_bytes(self):
        key = "a\\x00b\\r\\n\\xff"
        script = f'CL.THROTTLE "{key}" 0 1 1000\nCL.THROTTLE "{key}" 0 1 1000\nCL.THROTTLE "a" 0 1 1000\n'
        lines = run("redis-cli", "-p", str(self.server.port), input=script).stdout.split("\n")
        self.assertEqual([lines[0], lines[5], lines[10]], ["0", "1", "0"])

    def test_stat_prints_what_it_asks_for(self):
        for _ in range(3):
            self.cli("CL.THROTTLE", "k", "4", "1", "1000")
        # It prints until it is stopped.
        with subprocess.Popen(
            ["stdbuf", "-oL", "redis-cli", "-p", str(self.server.port), "--stat", "-i", "0.1"], stdout=subprocess.PIPE, text=True
        ) as stat:
            self.addCleanup(stat.kill)
            lines = [next(stat.stdout) for _ in range(4)]
            stat.kill()
        # keys, memory, clients, blocked, requests (+ since the last line), connections
        form = re.compile(r"^1 +[0-9.]+[KMG]? +([0-9]+) +0 +([0-9]+) \(\+[0-9]+\) +([0-9]+)\s*$")
        found = [form.match(line) for line in lines if not line.startswith(("-", "keys"))]
        self.assertTrue(all(found), "".join(lines))
        clients, commands, connections = map(int, found[-1].groups())
        self.assertTrue(1 <= clients <= connections and 4 <= commands and 4 <= connections, "".join(lines))

    def test_transactions_are_those_of_redis(self):
        """The same commands get the same replies from a real Redis."""
        conversations = [
            ["MULTI", "PING", "ECHO a", "EXEC", "PING"],
            ["MULTI", "EXEC"],
            ["MULTI", "PING", "DISCARD", "PING"],
            ["MULTI", "NONSENSE", "PING", "EXEC", "PING"],
            ["MULTI", "ECHO", "EXEC"],
            ["MULTI", "MULTI", "PING", "EXEC"],
            ["MULTI", "EXEC now", "EXEC"],
            ["MULTI", "SELECT 99", "PING", "EXEC"],
            ["EXEC", "DISCARD", "PING"],
            ["MULTI", "PING", "RESET", "EXEC"],
        ]
        with RedisServer() as redis:
            for commands in conversations:
                script = "".join(command + "\n" for command in commands)
                replies = [run("redis-cli", "-p", str(port), input=script).stdout for port in (redis.port, self.server.port)]
                self.assertEqual(replies[1], replies[0], commands)

    def test_a_transaction_takes_when_it_is_executed(self):
        throttle = "CL.THROTTLE transaction 4 1 1000\n"
        script = "MULTI\n" + throttle + throttle + "EXEC\n" + "MULTI\n" + throttle + "DISCARD\n" + throttle
        lines = run("redis-cli", "-p", str(self.server.port), input=script).stdout.split("\n")[:-1]
        self.assertEqual(lines[:3], ["OK", "QUEUED", "QUEUED"])
        self.assertEqual(lines[3:13], ["0", "5", "4", "-1", "1000", "0", "5", "3", "-1", "2000"])
        self.assertEqual(lines[-5:], ["0", "5", "2", "-1", "3000"])

    def test_a_counter_is_a_fixed_window_and_counts_decimals_exactly(self):
        window = ["INCREX", "window", "UBOUND", "3", "EX", "60", "ENX"]
        self.assertEqual([self.cli(*window) for _ in range(5)], [["1", "1"], ["2", "1"], ["3", "1"], ["3", "0"], ["3", "0"]])
        self.assertEqual(self.cli("TTL", "window"), ["60"])
        self.cli("INCREX", "sum", "BYFLOAT", "0.1")
        self.assertEqual(self.cli("INCREX", "sum", "BYFLOAT", "0.2"), ["0.3", "0.2"])
        self.assertEqual(self.cli("-3", "--no-raw", "INCREX", "sum", "BYFLOAT", "0.25"), ["1) (double) 0.55", "2) (double) 0.25"])
        self.assertEqual(self.cli("CL.THROTTLE", "sum", "4", "1", "10")[0][:9], "WRONGTYPE")
        self.assertEqual(self.cli("EXISTS", "window", "sum"), ["2"])
        self.assertEqual(self.cli("DEL", "window", "sum"), ["2"])
        self.assertEqual(self.cli("INCREX", "sum"), ["1", "1"])

    def test_redis_cli_finds_the_scripts(self):
        wrapper = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
        sha1 = self.cli("SCRIPT", "LOAD", wrapper)[0]
        self.assertEqual(sha1, hashlib.sha1(wrapper.encode()).hexdigest())
        self.assertEqual(self.cli("EVALSHA", sha1, "1", "script", "4", "1", "1000"), ["0", "5", "4", "-1", "1000"])
        self.assertEqual(self.cli("EVAL", wrapper, "1", "script", "4", "1", "1000"), ["0", "5", "3", "-1", "2000"])
        self.assertEqual(self.cli("TTL", "script"), ["2000"])
        self.assertEqual(self.cli("DEL", "script"), ["1"])
        self.assertEqual(self.cli("EXISTS", "script"), ["0"])


class RedisCliPermits(unittest.TestCase):
    RULE = ("--rule", "pool: 2 concurrency ttl 60s")
    ENTRIES = ("ENTRIES", "1", "pool", "db")

    def cli(self, server, *words):
        return run("redis-cli", "-p", str(server.port), *words).stdout.split("\n")[:-1]

    def acquire(self, server, *options):
        """Whether it may pass, and the id."""
        fields = self.cli(server, "HG.ACQUIRE", "default", *options, *self.ENTRIES)
        return fields[1] == "1", fields[fields.index("id") + 1]

    def release(self, server, permit):
        return self.cli(server, "HG.RELEASE", "default", "ID", permit, *self.ENTRIES)[:2] == ["released", "1"]

    def over_http(self, server, path, **more):
        body = {"descriptors": [{"entries": [{"key": "pool", "value": "db"}]}], **more}
        return json.loads(server.request("POST", path, json.dumps(body))[2])

    def check_two_instances(self, *words, **more):
        one, other = [self.enterContext(Headgate(*self.RULE, *words, **more)) for _ in range(2)]
        until(lambda: one.check(path="/v1/peek", pool="db")[0] == 200, 20, "it is ready")
        passes, first = self.acquire(one)
        self.assertTrue(passes)
        self.assertTrue(self.over_http(other, "/v1/acquire", id="a job")["allowed"])
        self.assertFalse(self.acquire(other)[0], "both are taken")
        self.assertEqual(self.acquire(one, "ID", "a job"), (True, "a job"))
        # Either protocol of any instance releases what the other has given.
        self.assertTrue(self.over_http(other, "/v1/release", id=first)["released"])
        self.assertTrue(self.release(one, "a job"))
        self.assertFalse(self.release(other, "a job"))
        # A pipeline is answered in its order.
        entries = " ".join(self.ENTRIES)
        lines = [f"HG.ACQUIRE default ID job-{i} {entries}" for i in range(3)]
        lines += [f"HG.RELEASE default ID job-{i} {entries}" for i in range(3)]
        with other.connect() as connection:
            connection.sendall(("\r\n".join(lines) + "\r\n").encode())
            replies = Replies(connection).take(6)
        self.assertEqual([reply[1] for reply in replies], [1, 1, 0, 1, 1, 0])

    def test_a_permit_is_acquired_and_released(self):
        require("redis-cli")
        server = self.enterContext(Headgate(*self.RULE))
        lines = self.cli(server, "HG.ACQUIRE", "default", "ID", "job", "PX", "5000", *self.ENTRIES)
        self.assertEqual(lines[-8:], ["id", "job", "in_flight", "1", "limit", "2", "expires_in_ms", "5000"])
        self.assertTrue(self.acquire(server)[0])
        denied = self.cli(server, "-3", "HG.ACQUIRE", "default", *self.ENTRIES)
        self.assertRegex("\n".join(denied), r"allowed.*(false|0)")
        self.assertEqual(
            self.cli(server, "HG.RELEASE", "default", "ID", "job", *self.ENTRIES),
            ["released", "1", "permits", "released", "1", "in_flight", "1", "limit", "2", "rule", "pool"],
        )
        self.assertTrue(self.acquire(server)[0])
        self.assertEqual(self.cli(server, "HG.ACQUIRE", "default", "PX", "1", *self.ENTRIES)[0][:20], "ERR PX must be a who")

    def test_instances_share_permits_in_redis(self):
        require("redis-cli")
        require_redis()
        redis_server = self.enterContext(RedisServer())
        self.check_two_instances("--store", f"redis://127.0.0.1:{redis_server.port}", *PATIENT)

    def test_instances_share_permits_in_zookeeper(self):
        require("redis-cli")
        server = self.enterContext(ZooKeeperServer())
        self.check_two_instances("--store", server.url(), "--store-timeout", "5s", "--on-store-failure", "deny")

    def test_instances_share_permits_in_dynamodb(self):
        require("redis-cli")
        server = self.enterContext(Dynalite(persistent=True))
        done = run(BINARY, "store", "create-table", server.url(), env={**os.environ, **NO_KEYS, **KEYS})
        self.assertEqual(done.returncode, 0, done.stderr)
        words = ("--store", server.url(), "--store-timeout", "5s", "--on-store-failure", "deny")
        self.check_two_instances(*words, env={**NO_KEYS, **KEYS})

    def test_a_release_says_that_the_store_is_away(self):
        require("redis-cli")
        require_redis()
        redis_server = self.enterContext(RedisServer())
        server = self.enterContext(Headgate(*self.RULE, "--store", f"redis://127.0.0.1:{redis_server.port}", *PATIENT))
        permit = self.acquire(server)[1]
        redis_server.kill()
        self.assertTrue(self.acquire(server)[0], "its share of the permits")
        line = self.cli(server, "HG.RELEASE", "default", "ID", permit, *self.ENTRIES)[0]
        self.assertIn("ERR the shared store cannot be reached: no permit of rule pool was released", line)


class RedisBenchmark(unittest.TestCase):
    def test_is_served_and_the_count_is_exact(self):
        require("redis-benchmark")
        with Headgate() as server:
            command = ["CL.THROTTLE", "shared", "999", "1", "1000000"]
            result = run("redis-benchmark", "-p", str(server.port), "-n", "20000", "-P", "16", "-c", "20", *command)
            self.assertIn("requests per second", result.stdout, result.stderr)
            _, _, text = server.request("GET", "/metrics")
            self.assertGreaterEqual(len(text), 100)
            self.assertEqual(
                redis.Redis(host="127.0.0.1", port=server.port).execute_command("CL.THROTTLE", "shared", 999, 1, 1000000)[:3], [1, 1000, 0]
            )


class PythonRedis(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Headgate(*RULES, "--credential", "open sesame"))

    def test_throttle_and_pipelines(self):
        client = redis.Redis(host="127.0.0.1", port=self.server.port)
        self.assertTrue(client.ping())
        self.assertEqual(client.execute_command("CL.THROTTLE", b"\x00\xff", 15, 30, 60), [0, 16, 15, -1, 2])
        pipe = client.pipeline(transaction=False)
        for _ in range(100):
            pipe.execute_command("CL.THROTTLE", "piped", 9, 1, 1000)
        self.assertEqual(sum(answer[0] == 0 for answer in pipe.execute()), 10)

    def test_counters_in_pipelines(self):
        client = redis.Redis(host="127.0.0.1", port=self.server.port)
        for transaction in (False, True):
            pipe = client.pipeline(transaction=transaction)
            for _ in range(20):
                pipe.execute_command("INCREX", f"counter {transaction}", "BYINT", 2, "UBOUND", 30)
            self.assertEqual([reply[1] for reply in pipe.execute()], [2] * 15 + [0] * 5)

    def test_transactions_and_scripts(self):
        client = redis.Redis(host="127.0.0.1", port=self.server.port)
        pipe = client.pipeline(transaction=True)
        for _ in range(3):
            pipe.execute_command("CL.THROTTLE", "transaction", 4, 1, 1000)
        self.assertEqual([reply[2] for reply in pipe.execute()], [4, 3, 2])
        wrapper = client.register_script("return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))")
        for remaining in (1, 0):
            self.assertEqual(wrapper(keys=["transaction"], args=[4, 1, 1000])[:3], [0, 5, remaining])

    def test_the_server_and_its_clients_are_described(self):
        stranger = redis.Redis(host="127.0.0.1", port=self.server.port, client_name="stranger")
        known = redis.Redis(host="127.0.0.1", port=self.server.port, password="open sesame", client_name="known")
        own = stranger.client_info()
        self.assertEqual((own["name"], own["db"], own["user"]), ("stranger", 0, "default"))
        self.assertRegex(own["addr"], r"^127\.0\.0\.1:[0-9]+$")
        self.assertEqual(stranger.role(), [b"master", 0, []])
        self.assertNotIn("connected_clients", stranger.info())
        known.execute_command("CL.THROTTLE", "k", 4, 1, 1000)
        self.assertEqual(known.dbsize(), 1)
        self.assertEqual({client["name"] for client in known.client_list()}, {"stranger", "known"})
        info = known.info()
        self.assertEqual((info["db0"]["keys"], info["connected_clients"]), (1, 2))
        self.assertGreater(info["used_memory"], 1_000_000)
        # Runs last, because redis-py abandons a connection that was not authenticated.
        for reveals in (stranger.client_list, stranger.dbsize):
            with self.assertRaises(redis.exceptions.AuthenticationError):
                reveals()

    def test_errors_are_redis_errors(self):
        client = redis.Redis(host="127.0.0.1", port=self.server.port)
        with self.assertRaisesRegex(redis.ResponseError, "Couldn't parse as integer: abc"):
            client.execute_command("CL.THROTTLE", "k", "abc", 1, 1)
        with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
            client.execute_command("FLUSHALL")

    def test_state_needs_the_credential(self):
        words = ("HG.RESET", "default", "ENTRIES", 1, "user", "ann")
        with self.assertRaises(redis.exceptions.AuthenticationError):
            redis.Redis(host="127.0.0.1", port=self.server.port).execute_command(*words)
        with self.assertRaisesRegex(redis.ResponseError, "WRONGPASS"):
            redis.Redis(host="127.0.0.1", port=self.server.port, password="wrong").ping()
        redis.Redis(host="127.0.0.1", port=self.server.port, password="open sesame").execute_command(*words)


class ServerWithOneUser(Headgate):
    """Only `ann`, with the password `apple`, has rights."""

    def __init__(self):
        self.users = tempfile.NamedTemporaryFile("w", suffix=".users")
        hashed = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        self.users.write(f"ann check {hashed}\n")
        self.users.flush()
        super().__init__(*RULES, "--users-file", self.users.name)

    def __exit__(self, *error):
        self.users.close()
        return super().__exit__(*error)


class ClientsThatLogIn(unittest.TestCase):
    """The first commands of clients that have a password."""

    def setUp(self):
        self.server = self.enterContext(ServerWithOneUser())

    def test_redis_py(self):
        login = {"username": "ann", "password": "apple", "client_name": "ours", "db": 0}
        client = redis.Redis(host="127.0.0.1", port=self.server.port, **login)
        self.assertEqual(client.execute_command("CL.THROTTLE", "key", 15, 30, 60), [0, 16, 15, -1, 2])
        pipe = client.pipeline(transaction=True)
        pipe.execute_command("CL.THROTTLE", "piped", 4, 1, 1000)
        self.assertEqual(pipe.execute()[0][2], 4)
        own = client.client_info()
        self.assertEqual((own["user"], own["name"]), ("ann", "ours"))
        stranger = redis.Redis(host="127.0.0.1", port=self.server.port)
        self.assertTrue(stranger.ping())
        with self.assertRaises(redis.exceptions.AuthenticationError):
            stranger.time()

    def test_redis_cli_and_redis_benchmark(self):
        require("redis-benchmark")
        at = ("-p", str(self.server.port), "--user", "ann")
        reply = run("redis-cli", *at, "--pass", "apple", "--no-auth-warning", "CL.THROTTLE", "key", "15", "30", "60")
        self.assertEqual(reply.stdout.split(), ["0", "16", "15", "-1", "2"])
        result = run("redis-benchmark", *at, "-a", "apple", "-n", "100", "CL.THROTTLE", "shared", "9", "1", "1000000")
        self.assertIn("requests per second", result.stdout, result.stderr)
        self.assertIn("NOAUTH", run("redis-cli", "-p", str(self.server.port), "COMMAND", "DOCS").stdout)


class NodeClients(unittest.TestCase):
    def setUp(self):
        require("node")
        if not os.path.isdir(os.path.join(INTEGRATION, "node_modules")):
            self.fail("the Node.js clients are not installed; hint: ./dev setup test")
        self.server = self.enterContext(Headgate(*RULES))

    def run_script(self, name, *login, server=None):
        port = (server or self.server).port
        result = run("node", os.path.join(INTEGRATION, name), str(port), *login)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(re.search(r"^ok$", result.stdout, re.M), result.stdout)

    def test_ioredis(self):
        self.run_script("ioredis_client.mjs")

    def test_node_redis(self):
        self.run_script("node_redis_client.mjs")

    def test_node_redis_with_its_client_side_cache(self):
        self.run_script("node_redis_cache.mjs")

    def test_clients_that_log_in_where_nobody_else_has_a_right(self):
        server = self.enterContext(ServerWithOneUser())
        for script in ("ioredis_client.mjs", "node_redis_client.mjs"):
            self.run_script(script, "ann", "apple", server=server)


if __name__ == "__main__":
    unittest.main()
