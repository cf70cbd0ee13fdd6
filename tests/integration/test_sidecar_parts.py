"""One client whose requests last long cannot have all connections to the upstream: it uploads
slowly, or reads slowly, and others are served."""

import socket
import unittest

from harness import Sidecar, until
from upstreams import Upstream, read_exactly

CONNECTIONS = 8
# 8 × (8 - 1 - 6) > 6, so the seventh is allowed, and the last is not.
PART = 7
ARGS = ("--upstream-connections", str(CONNECTIONS), "--threads", "1", "--queue", "32")
SHARE = 'reason="client_share"'
BIG = b"x" * 20_000_000  # more than all buffers of the way take


def serve(connection, head):
    if head.startswith("POST"):
        read_exactly(connection, 100_000)
    body = BIG if head.startswith("GET /big") else b"xx"
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return True


class Parts(unittest.TestCase):
    def start(self, *args):
        self.upstream = Upstream(self, serve)
        self.sidecar = self.enterContext(Sidecar(self.upstream.port, args=(*ARGS, *args)))

    def hog(self, request, count):
        """Opens connections, and sends the same on each."""
        for _ in range(count):
            client = self.enterContext(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", self.sidecar.port))
            client.sendall(request)
            yield client

    def waits(self, reason=SHARE):
        return self.sidecar.metric(f"headgate_upstream_waits_total{{{reason}}}")

    def others_are_served(self):
        for name in ("ann", "bob", "cid") * 5:
            status, _, text = self.sidecar.request("GET", "/", headers={"X-Client-Id": name})
            self.assertEqual((status, text), (200, "xx"))

    def test_slow_uploads(self):
        self.start()
        request = b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: hog\r\nContent-Length: 100000\r\n\r\n" + b"y" * 1000
        uploads = list(self.hog(request, 20))
        until(lambda: self.waits() == 20 - PART, 10, "the uploads beyond the part of the client wait")
        until(lambda: len(self.upstream.heads) == PART, 10, "its part is used")
        self.others_are_served()
        # An upload that ends makes room for one of the waiting ones.
        asked = len(self.upstream.heads)
        uploads[0].sendall(b"y" * 99_000)
        self.assertTrue(read_exactly(uploads[0], 15).startswith(b"HTTP/1.1 200 OK"))
        until(lambda: len(self.upstream.heads) > asked, 10, "the next upload has begun")

    def test_slow_downloads(self):
        self.start()
        _ = list(self.hog(b"GET /big HTTP/1.1\r\nHost: a\r\nX-Client-Id: hog\r\n\r\n", 20))
        until(lambda: self.waits() == 20 - PART, 10, "the downloads beyond the part of the client wait")
        self.others_are_served()

    def test_the_queue_is_divided_too(self):
        self.start()
        request = b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: hog\r\nContent-Length: 100000\r\n\r\n"
        _ = list(self.hog(request, 45))
        refusals = f"headgate_upstream_queue_refusals_total{{{SHARE}}}"
        until(lambda: self.sidecar.metric(refusals) > 0, 10, "the client has its part of the queue")
        self.others_are_served()

    def test_passthrough_holds_nobody_to_a_part(self):
        self.start("--mode", "passthrough")
        request = b"POST / HTTP/1.1\r\nHost: a\r\nX-Client-Id: hog\r\nContent-Length: 100000\r\n\r\n"
        _ = list(self.hog(request, CONNECTIONS + 1))
        until(lambda: self.waits('reason="no_place"') >= 1, 10, "one waits until there is a place")
        until(lambda: len(self.upstream.heads) == CONNECTIONS, 10, "all connections are in use")
        self.assertEqual(self.waits(), 0)


if __name__ == "__main__":
    unittest.main()
