"""Limits of concurrency: three instances that share a real store, many callers at once, and holders
that are killed."""

import json
import os
import random
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest

from dynamodb import KEYS, NO_KEYS, Dynalite
from harness import BINARY, PATIENT, Headgate, RedisServer, require_redis, run, until
from zookeeper import ZooKeeperServer

LIMIT = 5
TTL_SECONDS = 2
# Nobody gets a permit that the store has not given.
STRICT = ("--on-store-failure", "deny")
RULE = ("--rule", f"pool: {LIMIT} concurrency ttl {TTL_SECONDS}s")


def body(**more):
    return {"descriptors": [{"entries": [{"key": "pool", "value": "db"}]}], **more}


def post(server, path, content):
    status, _, text = server.request("POST", path, json.dumps(content))
    return status, json.loads(text)


def acquire(server, **more):
    status, answer = post(server, "/v1/acquire", body(**more))
    return answer["id"] if status == 200 else None


def release(server, permit):
    """Returns whether the permit was held. A store that is too slow is asked again, and may have released it before."""
    repeated = False
    for _ in range(5):
        status, answer = post(server, "/v1/release", body(id=permit))
        if status == 200:
            return answer["released"] or repeated
        assert status == 503, answer
        repeated = True
    raise AssertionError(answer)


class Held:
    """How many permits callers hold: from the answer until they ask to release, so never more than
    the server counts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = self.granted = 0

    def take(self):
        with self.lock:
            self.now += 1
            self.granted += 1
            self.most = max(self.most, self.now)

    def give_back(self):
        with self.lock:
            self.now -= 1


class Permits(unittest.TestCase):
    def fleet(self, size=3, *more):
        require_redis()
        self.redis = self.enterContext(RedisServer())
        store = ("--store", f"redis://127.0.0.1:{self.redis.port}", *PATIENT)
        return [self.enterContext(Headgate(*RULE, *store, *more)) for _ in range(size)]

    def call_all_at_once(self, servers, callers, rounds):
        held = Held()
        failures = []

        def caller(seed):
            choice = random.Random(seed)
            try:
                for _ in range(rounds):
                    permit = acquire(choice.choice(servers))
                    if permit is None:
                        continue
                    held.take()
                    held.give_back()
                    # Any instance releases what another one has granted.
                    if not release(choice.choice(servers), permit):
                        failures.append(f"{permit} was not held")
            except Exception as error:  # pylint: disable=broad-except
                failures.append(repr(error))

        threads = [threading.Thread(target=caller, args=(seed,)) for seed in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        return held

    def test_three_instances_never_hold_more_than_the_limit_together(self):
        servers = self.fleet(3, *STRICT)
        held = self.call_all_at_once(servers, callers=24, rounds=40)
        self.assertLessEqual(held.most, LIMIT)
        self.assertGreater(held.granted, 24)
        # All have been given back.
        permits = [acquire(servers[i % 3]) for i in range(LIMIT)]
        self.assertNotIn(None, permits)
        self.assertIsNone(acquire(servers[0]))
        for permit in permits:
            self.assertTrue(release(servers[1], permit))

    def check_strict_store(self, url):
        """The same over a store that can only compare and set."""
        environment = {**NO_KEYS, **KEYS}
        words = (*RULE, "--store", url, "--store-timeout", "2s", *STRICT)
        servers = [self.enterContext(Headgate(*words, env=environment)) for _ in range(3)]
        for server in servers:
            until(lambda server=server: server.check(path="/v1/peek", pool="db")[0] == 200, 20, "it is ready")
        held = self.call_all_at_once(servers, callers=9, rounds=12)
        self.assertLessEqual(held.most, LIMIT)
        self.assertGreater(held.granted, 0)
        begun = time.monotonic()
        until(lambda: all(acquire(servers[0], id=f"lost-{i}") for i in range(LIMIT)), 20, "all are taken")
        servers[0].stop(signal.SIGKILL)
        until(lambda: acquire(servers[1], id="next") is not None, 20, "a permit comes back")
        self.assertGreaterEqual(time.monotonic() - begun, TTL_SECONDS - 0.1)

    def test_in_zookeeper(self):
        server = self.enterContext(ZooKeeperServer())
        self.check_strict_store(server.url())

    def test_in_dynamodb(self):
        server = self.enterContext(Dynalite(persistent=True))
        done = run(BINARY, "store", "create-table", server.url(), env={**os.environ, **NO_KEYS, **KEYS})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_strict_store(server.url())

    def test_the_permits_of_a_killed_holder_come_back_after_the_ttl(self):
        servers = self.fleet()
        begun = time.monotonic()
        for _ in range(LIMIT):
            self.assertIsNotNone(acquire(servers[0]))
        servers[0].stop(signal.SIGKILL)
        self.assertIsNone(acquire(servers[1]))
        until(lambda: acquire(servers[1]) is not None, 20, "a permit comes back")
        # The server's clock and this one may differ by a little.
        self.assertGreaterEqual(time.monotonic() - begun, TTL_SECONDS - 0.1)
        self.assertGreaterEqual(servers[1].metric('headgate_permits_total{domain="default",rule="pool",event="expired"}'), 0)
        # The key goes with its last permit.
        until(lambda: self.redis.command("EXISTS", "hg:{p|default|pool=db}") == "0", 20, "the key is gone")

    def test_a_check_only_looks(self):
        first, second, _ = self.fleet()
        for _ in range(2 * LIMIT):
            self.assertEqual(first.check(pool="db")[0], 200)
        permits = [acquire(second) for _ in range(LIMIT)]
        status, fields, answer = first.check(pool="db")
        self.assertEqual((status, answer["decisions"][0]["remaining"]), (429, 0))
        self.assertLessEqual(int(fields["retry-after"]), TTL_SECONDS)
        self.assertTrue(release(first, permits[0]))
        self.assertEqual(second.check(pool="db")[0], 200)
        looked = 'headgate_permits_total{domain="default",rule="pool",event="looked_at"}'
        self.assertEqual(first.metric(looked), 2 * LIMIT + 1)

    def test_a_restarted_store_lets_nobody_wait_for_ever(self):
        servers = self.fleet(2)
        permit = acquire(servers[0])
        self.redis.kill()
        # Without the store each instance gives out its share, at least one.
        until(lambda: acquire(servers[0], id="alone") is not None, 20, "the policy decides")
        self.redis.start()
        until(lambda: post(servers[0], "/v1/release", body(id="alone"))[0] == 200, 20, "the store is back")
        # The store has forgotten it.
        until(lambda: post(servers[0], "/v1/release", body(id=permit))[0] == 200, 20, "a release is answered")
        until(lambda: acquire(servers[1]) is not None, 20, "a permit of the store")

    def test_one_process_alone(self):
        server = self.enterContext(Headgate(*RULE))
        held = self.call_all_at_once([server], callers=12, rounds=40)
        self.assertLessEqual(held.most, LIMIT)
        self.assertEqual(server.metric("headgate_permits_in_memory"), 0)
        # A caller that never releases.
        self.assertIsNotNone(acquire(server, id="lost"))
        self.assertEqual(server.metric("headgate_permits_in_memory"), 1)
        until(lambda: server.metric("headgate_permits_in_memory") == 0, 20, "it ends after its ttl")
        self.assertFalse(release(server, "lost"))
        unknown = 'headgate_permits_total{domain="default",rule="pool",event="unknown"}'
        self.assertEqual(server.metric(unknown), 1)

    def test_a_snapshot_holds_no_permits(self):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = ("--snapshot", os.path.join(folder, "buckets.snapshot"))
            first = self.enterContext(Headgate(*RULE, *snapshot))
            self.assertIsNotNone(acquire(first, id="one"))
            self.assertEqual(first.stop(), 0)
            second = self.enterContext(Headgate(*RULE, *snapshot))
            self.assertFalse(release(second, "one"))
            for _ in range(LIMIT):
                self.assertIsNotNone(acquire(second))
            self.assertEqual(second.stop(), 0)


class ClientsThatClose(unittest.TestCase):
    """While their command waits for a store that does not answer."""

    ACQUIRE = b"HG.ACQUIRE default ENTRIES 1 pool db\r\n"
    CONTENT = json.dumps(body()).encode()
    POST = (
        b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(CONTENT)
    ) + CONTENT

    def setUp(self):
        require_redis()
        self.redis = self.enterContext(RedisServer())
        self.addCleanup(self.redis.resume)
        store = ("--store", f"redis://127.0.0.1:{self.redis.port}", *PATIENT, *STRICT)
        rule = ("--rule", f"pool: {LIMIT} concurrency ttl 1h")
        self.server = self.enterContext(Headgate(*rule, *store, "--threads", "1"))
        until(lambda: self.held() == 0, 20, "the store answers")

    def held(self):
        status, _, answer = self.server.check(path="/v1/peek", pool="db")
        return LIMIT - answer["decisions"][0]["remaining"] if status == 200 else None

    def connections(self):
        return self.server.metric("headgate_connections")

    def send(self, request):
        """Returns a client whose request waits for the store."""
        client = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(client.close)
        client.sendall(request)
        # The only loop answers this behind the request.
        self.assertEqual(self.server.request("GET", "/healthz")[0], 200)
        return client

    def test_the_permit_goes_back(self):
        for name, request in (("RESP", self.ACQUIRE), ("two", 2 * self.ACQUIRE), ("HTTP", self.POST), ("two of HTTP", 2 * self.POST)):
            for end in ("close", "finish sending", "reset"):
                with self.subTest(request=name, end=end):
                    self.redis.pause()
                    client = self.send(request)
                    before = self.connections()
                    if end == "finish sending":
                        client.shutdown(socket.SHUT_WR)
                    else:
                        if end == "reset":
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        client.close()
                    until(lambda before=before: self.connections() < before, 20, "the connection ends")
                    self.redis.resume()
                    # The store is asked behind the request, but perhaps before the release.
                    until(lambda: self.held() == 0, 20, "the permit goes back")

    def test_other_requests_of_a_client_that_still_reads_are_answered(self):
        check = b"HG.CHECK default ENTRIES 1 pool db\r\nPING\r\n"
        post = self.POST.replace(b"/v1/acquire", b"/v1/check")
        for request, answer in ((check, rb"^\*4\r\n\$7\r\nallowed\r\n:1\r\n(?s:.*)\+PONG\r\n$"), (post, rb"^HTTP/1.1 200 OK\r\n")):
            self.redis.pause()
            with self.send(request) as client:
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(self.server.request("GET", "/healthz")[0], 200)
                self.redis.resume()
                self.assertRegex(b"".join(iter(lambda c=client: c.recv(4096), b"")), answer)

    def test_a_permit_that_was_answered_stays(self):
        with self.send(self.ACQUIRE) as client:
            self.assertTrue(client.recv(4096))
        self.assertEqual(self.held(), 1)


if __name__ == "__main__":
    unittest.main()
