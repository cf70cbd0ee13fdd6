"""The end of proxied requests: what sizes cost, when permits are given back, and how a client sees
an answer that breaks off."""

import os
import socket
import struct
import tempfile
import threading
import unittest

from harness import RedisServer, Sidecar, read_all, require_redis, until
from upstreams import Upstream

# Fields about sizes count bytes.
KIB = 1024
SIZES = """domain: default
descriptors:
  - key: client
    rate_limit:
      requests_per_unit: 1000
      period: 1h
      algorithm: fixed_window
      sharing: exact
      cost: {of: OF, per: 1KiB, reserve: 4KiB}
"""
OVERDRAWN = """domain: default
descriptors:
  - key: client
    rate_limit: {requests_per_unit: 10, period: 1s, cost: {of: response_bytes, per: 1KiB}}
"""
LEASED = """domain: default
descriptors:
  - key: client
    rate_limit: {requests_per_unit: 1000, period: 24h, sharing: leased, cost: {of: response_bytes, per: 1KiB}}
"""
PERMITS = """domain: default
descriptors:
  - key: client
    rate_limit: {algorithm: concurrency, requests: MAX, ttl: TTL}
"""
ANN = {"X-Client-Id": "ann"}
LINES = "Host: a\r\nX-Client-Id: ann\r\n"


class Ends(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.release = threading.Event()
        self.addCleanup(self.release.set)
        self.upstream = Upstream(self, self.serve)

    def serve(self, connection, head):
        """`/N`: N bytes without a length; `/sized/N`: with one; `/open`: a byte, and the rest when
        `release` is set; `/cut`: breaks off."""
        path = head.split(" ")[1]
        if path == "/open":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            self.release.wait(60)
            connection.sendall(b"0\r\n\r\n")
        elif path == "/cut":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            return False
        elif path.startswith("/sized/"):
            size = int(path.rpartition("/")[2])
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        else:
            size = int(path[1:])
            chunk = b"%x\r\n" % size + bytes(size) + b"\r\n" if size else b""
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
        return True

    def start(self, rules, *args):
        path = os.path.join(self.folder, "rules.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(rules)
        return self.enterContext(Sidecar(self.upstream.port, args=("--rules", path, *args)))

    def store(self):
        require_redis()
        self.redis = self.enterContext(RedisServer())
        return ("--store", f"redis://127.0.0.1:{self.redis.port}", "--store-timeout", "2s")

    def get(self, sidecar, path="/0", headers=ANN):
        return sidecar.request("GET", path, headers=headers)

    def left(self, sidecar):
        """The units that are left before another request, whose answer is empty and gives its
        reserve back."""
        fields = self.get(sidecar)[1]
        return int(fields["ratelimit"].split(";r=")[1].split(";")[0]) // KIB + 4

    def open(self, sidecar, path="/open", version="1.1"):
        """A client whose answer has begun."""
        client = self.enterContext(sidecar.connect())
        client.sendall(f"GET {path} HTTP/{version}\r\n{LINES}\r\n".encode())
        received = b""
        while not received.partition(b"\r\n\r\n")[2]:
            part = client.recv(1000)
            self.assertTrue(part, received)
            received += part
        return client

    # ---- Sizes

    def check_responses(self, *args):
        sidecar = self.start(SIZES.replace("OF", "response_bytes"), *args)
        self.assertEqual(len(self.get(sidecar, "/5000")[2]), 5000)
        until(lambda: self.left(sidecar) == 995, 5, "5 units for 5000 bytes")
        self.assertEqual(len(self.get(sidecar, "/sized/10240")[2]), 10240)
        until(lambda: self.left(sidecar) == 985, 5, "10 units")
        # A client that leaves pays for the bytes that were sent: one.
        client = self.open(sidecar)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        until(lambda: self.left(sidecar) == 984, 5, "1 unit")
        self.assertEqual(sidecar.metric('headgate_size_units_total{event="forgotten"}'), 0)

    def test_responses_cost_their_size(self):
        self.check_responses()

    def test_responses_cost_their_size_in_a_shared_store(self):
        self.check_responses(*self.store())

    def test_instances_with_leases_give_out_the_limit(self):
        store = self.store()
        pair = [self.start(LEASED, *store) for _ in range(2)]
        passed = []
        denied = 0

        def both_deny():
            nonlocal denied
            for sidecar in pair:
                status, _, text = self.get(sidecar, "/10240")
                passed.append(len(text) // 1024 if status == 200 else 0)
                denied = 0 if status == 200 else denied + 1
            return denied >= 40

        until(both_deny, 60, "the bucket is empty")
        # The last answer of each may be larger than the rest of the bucket, and a unit comes back
        # every 86 s.
        self.assertIn(sum(passed), range(1000, 1021))

    def test_requests_cost_their_size(self):
        sidecar = self.start(SIZES.replace("OF", "request_bytes"))
        status = sidecar.request("POST", "/0", body=bytes(7000), headers=ANN)[0]
        self.assertEqual(status, 200)
        fields = self.get(sidecar)[1]
        self.assertIn(f";r={993 * KIB};", fields["ratelimit"])
        self.assertEqual(sidecar.request("POST", "/0", body=bytes(1_100_000), headers=ANN)[0], 429)
        with sidecar.connect() as client:
            client.sendall(f"POST /open HTTP/1.1\r\n{LINES}Content-Length: 20000\r\n\r\n".encode() + bytes(2000))
            until(lambda: f";r={973 * KIB};" in self.get(sidecar)[1]["ratelimit"], 5, "all of it, because it is announced")
        until(lambda: f";r={991 * KIB};" in self.get(sidecar)[1]["ratelimit"], 5, "what came")

    def check_overdrawn(self, first, other):
        self.assertEqual(len(self.get(first, "/30000")[2]), 30000)
        # With a store, the charge may be on its way when the client has got everything.
        until(lambda: self.get(other)[0] == 429, 2, "30 units of which 10 were there")
        # 20 come back in 2 s, and then one for the request.
        status, fields, _ = self.get(other)
        self.assertEqual(status, 429)
        self.assertIn(fields["retry-after"], ("1", "2", "3"))
        self.assertEqual(self.get(other, headers={"X-Client-Id": "bob"})[0], 200)
        until(lambda: self.get(other)[0] == 200, 10, "time has paid")

    def test_a_size_beyond_the_limit_overdraws_the_bucket(self):
        sidecar = self.start(OVERDRAWN)
        self.check_overdrawn(sidecar, sidecar)

    def test_a_size_beyond_the_limit_denies_at_other_instances(self):
        store = self.store()
        self.check_overdrawn(self.start(OVERDRAWN, *store), self.start(OVERDRAWN, *store))

    # ---- Permits

    def permits(self, most, ttl, *args):
        return self.start(PERMITS.replace("MAX", str(most)).replace("TTL", ttl), *args)

    def test_permits_are_given_back_in_every_way(self):
        sidecar = self.permits(2, "1h")
        clients = [self.open(sidecar) for _ in range(2)]
        self.assertEqual(self.get(sidecar)[0], 429)
        self.assertEqual(self.get(sidecar, headers={"X-Client-Id": "bob"})[0], 200)
        # The client leaves.
        clients[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        clients[0].close()
        until(lambda: self.get(sidecar)[0] == 200, 5, "one may be sent again")
        # The upstream dies in the middle of an answer.
        self.open(sidecar, "/cut")
        until(lambda: self.get(sidecar)[0] == 200, 5, "one may be sent again")
        # Both answers are complete.
        again = self.open(sidecar)
        self.assertEqual(self.get(sidecar)[0], 429)
        self.release.set()
        for client in (clients[1], again):
            client.shutdown(socket.SHUT_WR)
            read_all(client)
        self.open(sidecar, "/1")
        until(lambda: self.get(sidecar)[0] == 200, 5, "one may be sent again")

    def test_a_long_answer_keeps_its_permit(self):
        sidecar = self.permits(1, "1s")
        began = sidecar.metric("headgate_process_uptime_seconds")
        self.open(sidecar)
        denied = []
        done = threading.Event()
        threading.Timer(3.5, done.set).start()
        while not done.is_set():
            denied.append(self.get(sidecar)[0])
        self.assertEqual(set(denied), {429}, began)
        self.release.set()
        until(lambda: self.get(sidecar)[0] == 200, 5, "it has ended")

    def test_permits_are_those_of_all_sidecars(self):
        store = self.store()
        pair = [self.permits(3, "5s", *store) for _ in range(2)]
        self.open(pair[0])
        self.open(pair[1])
        self.open(pair[1])
        for sidecar in pair:
            self.assertEqual(self.get(sidecar)[0], 429)
        # The permits of a process that is killed end after their ttl.
        pair[1].process.kill()
        self.assertEqual(self.get(pair[0])[0], 429)
        until(lambda: self.get(pair[0])[0] == 200, 15, "they have ended")
        self.release.set()

    # ---- Answers that break off

    def test_an_answer_without_an_end_is_reset(self):
        sidecar = self.permits(9, "1h")
        with self.assertRaises(ConnectionResetError):
            client = self.open(sidecar, "/cut", "1.0")
            while client.recv(1000):
                pass
        self.assertTrue(read_all(self.open(sidecar, "/1", "1.0")).endswith(b""), "a whole one ends")

    def test_a_sidecar_in_front_of_itself_answers_508(self):
        sidecar = self.start(PERMITS.replace("MAX", "100").replace("TTL", "1h"))
        ports = f"http://127.0.0.1:{sidecar.port}"
        done = sidecar.request("PATCH", "/v1/sidecar", body='{"upstream":"%s"}' % ports, port=sidecar.admin_port)
        self.assertEqual(done[0], 200, done)
        self.assertEqual(self.get(sidecar)[0], 508)
        self.assertEqual(sidecar.metric('headgate_proxy_requests_total{outcome="looping"}'), 1)


if __name__ == "__main__":
    unittest.main()
