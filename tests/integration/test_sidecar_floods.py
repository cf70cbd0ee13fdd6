"""Floods of HTTP/2 against a sidecar with one event loop: each ends with the documented answer, is
counted, and takes bounded memory. Clients of HTTP/1.1 and HTTP/2 on the same loop are served meanwhile.

The budgets are in headgate/http/http2/README.md."""

import contextlib
import http.client
import os
import socket
import struct
import threading
import unittest

import http2_frames as h2
from harness import Sidecar, until, wait
from test_sidecar import MIB, peak_memory
from upstreams import Upstream

ATTACKERS = 4
PAGE = os.urandom(MIB)
HONEST_SECONDS = 10  # no honest request takes longer, even on a busy machine
# One connection: 1 MiB of unsent output, a header block of 128 KiB that decodes to 256 KiB, and the rest.
CONNECTION_BYTES = 2 * MIB
# One stream whose client does not read: a window of 64 KiB and a read of 64 KiB more, in a buffer that has
# doubled.
STREAM_BYTES = 256 << 10
STREAMS = 100
ALL_BYTES = 256 * MIB  # of all connections together, and an eighth more for the gaps between them


def serve(connection, head):
    body = PAGE if head.startswith("GET /page") else PAGE[: 60 << 10] if head.startswith("GET /leaf") else b"ok"
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return True


class Peer:
    """A connection whose client says anything. A thread reads what the sidecar sends, if `reads`."""

    def __init__(self, port, first=h2.frame(h2.SETTINGS, 0, 0), reads=True):
        self._connection = socket.socket()
        if not reads:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._connection.settimeout(60)
        self._connection.connect(("127.0.0.1", port))
        self.goaway = None  # the error code
        self.resets = self.heads = 0
        self.ended = False
        self._rest = b""
        self.send(h2.PREFACE + first)
        self._thread = threading.Thread(target=self._read, daemon=True)
        if reads:
            self._thread.start()

    def send(self, frames):
        """Sends what the sidecar takes; it may have closed the connection."""
        try:
            self._connection.sendall(frames)
        except OSError:
            self.ended = True

    def read_some(self, size):
        """For a client that `reads` nothing by itself."""
        return self._connection.recv(size)

    def flood(self, make, most, batch=50, paced=False):
        """Sends `make(stream)` for one new stream after the other, until the connection ends. If `paced`,
        each batch waits for the resets of the one before."""
        for first in range(0, most, batch):
            if self.ended:
                return
            self.send(b"".join(make(2 * number + 1) for number in range(first, first + batch)))
            if paced:
                until(lambda first=first: self.ended or self.resets >= first + batch, 20, "the streams are reset")

    def close(self):
        self._connection.close()

    def _read(self):
        try:
            while part := self._connection.recv(65_536):
                self._rest += part
                self._take_frames()
        except OSError:
            pass
        self.ended = True

    def _take_frames(self):
        while len(self._rest) >= 9:
            size, kind, flags, _ = h2.parse_frame_header(self._rest[:9])
            if len(self._rest) < 9 + size:
                return
            payload, self._rest = self._rest[9 : 9 + size], self._rest[9 + size :]
            if kind == h2.SETTINGS and not flags & h2.ACK:
                self.send(h2.frame(h2.SETTINGS, h2.ACK, 0))
            elif kind == h2.GOAWAY:
                self.goaway = struct.unpack(">I", payload[4:8])[0]
            self.resets += kind == h2.RST_STREAM
            self.heads += kind == h2.HEADERS


class SilentUpstream:
    """Takes requests over HTTP/2 (h2c), as many as come, and never answers."""

    def __init__(self, test):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        test.addCleanup(self._listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection):
        with connection:
            try:
                connection.sendall(h2.frame(h2.SETTINGS, 0, 0))
                while connection.recv(1 << 20):
                    pass
            except OSError:
                pass


class Honest:
    """Asks all the time, over HTTP/1.1 and over HTTP/2. Every answer must be 200 and in time."""

    def __init__(self, port):
        self._port = port
        self._stop = threading.Event()
        self.served = [0, 0]
        self.problems = []
        self._threads = [threading.Thread(target=self._run, args=(place, ask)) for place, ask in enumerate((self._http1, self._http2))]
        for thread in self._threads:
            thread.start()

    def _run(self, place, ask):
        try:
            for is_ok in ask():
                if not is_ok:
                    raise ValueError("another answer than 200")
                self.served[place] += 1
                if self._stop.is_set():
                    return
                wait(0.002)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.problems.append(repr(error))

    def _http1(self):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=HONEST_SECONDS)) as connection:
            while True:
                connection.request("GET", "/", headers={"X-Client-Id": "ann"})
                response = connection.getresponse()
                yield response.status == 200 and response.read() == b"ok"

    def _http2(self):
        with socket.create_connection(("127.0.0.1", self._port), timeout=HONEST_SECONDS) as connection:
            yield from self._http2_over(connection, connection.makefile("rb"))

    @staticmethod
    def _http2_over(connection, reader):
        connection.sendall(h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0))
        stream = 1
        while True:
            connection.sendall(h2.headers(stream, x_client_id="ann"))
            is_ok = False
            while True:
                header = reader.read(9)
                if len(header) < 9:
                    raise ValueError("the connection ended")
                size, kind, flags, of = h2.parse_frame_header(header)
                payload = reader.read(size)
                if kind == h2.SETTINGS and not flags & h2.ACK:
                    connection.sendall(h2.frame(h2.SETTINGS, h2.ACK, 0))
                if kind == h2.HEADERS and of == stream:
                    is_ok = h2.is_ok(payload)
                if kind in (h2.HEADERS, h2.DATA) and of == stream and flags & h2.END_STREAM:
                    break
            yield is_ok
            stream += 2

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def get(stream, path="/"):
    return h2.headers(stream, path=path, x_client_id="mallory")


def post(stream):
    return h2.headers(stream, flags=0, method="POST", x_client_id="mallory")


def without_path(stream):
    return h2.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS, stream, h2.literal(":method", "GET"))


def continuations(stream):
    """One header block for all streams: only the first is a HEADERS frame."""
    if stream == 1:
        return h2.frame(h2.HEADERS, h2.END_STREAM, 1, h2.block())
    return h2.frame(h2.CONTINUATION, 0, 1, h2.literal("x", "y"))


def bomb(stream):
    """4,000 bytes in the dynamic table, then one byte for each of 12,000 copies."""
    copies = b"\x40" + h2.text("x") + h2.text("a" * 4000) + b"\xbe" * 12_000
    return h2.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS, stream, h2.block() + copies)


def empty_data(stream):
    return post(1) if stream == 1 else h2.frame(h2.DATA, 0, 1)


PING = h2.frame(h2.PING, 0, 0, b"12345678")
# The reason in the metric, what is sent for each stream, and whether the sidecar's resets are awaited.
FLOODS = {
    "rapid reset": ("resets", lambda stream: get(stream) + h2.reset(stream), False),
    "malformed heads": ("provoked", without_path, True),
    "windows that overflow": ("provoked", lambda stream: post(stream) + h2.window_update(stream, 0x7FFFFFFF), True),
    "CONTINUATION": ("continuations", continuations, False),
    "bomb of HPACK": ("fields", bomb, False),
    "PING": ("pings", lambda _: PING, False),
    "SETTINGS": ("settings", lambda _: h2.initial_window(1000), False),
    "PRIORITY": ("priorities", lambda stream: h2.frame(h2.PRIORITY, 0, stream, bytes(5)), False),
    "unknown frames": ("unknown_frames", lambda _: h2.frame(0xBE, 0, 0, b"x"), False),
    "windows of one byte": ("window_updates", lambda _: h2.window_update(0, 1), False),
    "empty DATA": ("empty_data", empty_data, False),
}


# One loop, so that floods and honest clients meet.
ONE_LOOP = ("--threads", "1")


class Floods(unittest.TestCase):
    def start(self, *args):
        upstream = Upstream(self, serve)
        self.sidecar = self.enterContext(Sidecar(upstream.port, args=(*ONE_LOOP, *args)))
        self.honest = Honest(self.sidecar.port)
        self.addCleanup(self.honest.stop)
        self.are_served()

    def are_served(self):
        """The honest clients get further answers."""
        before = list(self.honest.served)

        def further():
            return self.honest.problems or all(now >= was + 10 for now, was in zip(self.honest.served, before))

        until(further, 20, "honest clients are served")
        self.assertEqual(self.honest.problems, [])

    def peers(self, count=ATTACKERS, **options):
        peers = [Peer(self.sidecar.port, **options) for _ in range(count)]
        for peer in peers:
            self.addCleanup(peer.close)
        return peers

    def floods(self, reason):
        return self.sidecar.metric(f'headgate_http2_floods_total{{reason="{reason}"}}')

    def outcomes(self, outcome):
        return self.sidecar.metric(f'headgate_proxy_requests_total{{outcome="{outcome}"}}')

    def shed(self):
        """Connections that were closed because all together had too much."""
        return self.sidecar.metric('headgate_connections_closed_total{reason="buffer_budget"}')

    def begin_measuring(self):
        with open(f"/proc/{self.sidecar.process.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak is the present size
        self.memory = peak_memory(self.sidecar.process)

    def grown(self):
        return peak_memory(self.sidecar.process) - self.memory

    def nothing_is_left(self):
        """The honest clients have at most one request each."""
        until(lambda: self.sidecar.metric("headgate_proxy_in_flight") <= 2, 20, "no request of the attackers is in progress")
        until(lambda: self.sidecar.metric("headgate_upstream_queue") == 0, 20, "no request waits")

    def test_each_flood_ends_with_goaway(self):
        self.start()
        for name, (reason, make, paced) in FLOODS.items():
            with self.subTest(name):
                before = self.floods(reason)
                self.begin_measuring()
                peers = self.peers()
                threads = [threading.Thread(target=peer.flood, args=(make, 100_000), kwargs={"paced": paced}) for peer in peers]
                for thread in threads:
                    thread.start()
                self.are_served()
                until(lambda: all(peer.ended for peer in peers), 30, "the sidecar closes the connections")
                for thread in threads:
                    thread.join()
                self.assertEqual([peer.goaway for peer in peers], [h2.ENHANCE_YOUR_CALM] * ATTACKERS)
                self.assertEqual(self.floods(reason), before + ATTACKERS)
                self.assertLess(self.grown(), ATTACKERS * CONNECTION_BYTES)
                self.nothing_is_left()
        self.are_served()

    def test_floods_whose_answers_nobody_reads(self):
        self.start()
        for name in ("rapid reset", "PING", "SETTINGS"):
            with self.subTest(name):
                reason, make, _ = FLOODS[name]
                before = self.floods(reason)
                self.begin_measuring()
                peers = self.peers(reads=False)
                for peer in peers:
                    peer.flood(make, 5000)
                until(lambda before=before, reason=reason: self.floods(reason) == before + ATTACKERS, 30, "all floods are counted")
                self.are_served()
                self.assertLess(self.grown(), ATTACKERS * CONNECTION_BYTES)
                self.nothing_is_left()

    def test_a_window_update_of_nothing(self):
        """An error of the connection, RFC 9113, 6.9; on a stream too, where it could be one of the stream."""
        self.start()
        for stream in (0, 1):
            (peer,) = self.peers(1)
            peer.send(post(1) + h2.window_update(stream, 0))
            until(lambda peer=peer: peer.ended, 20, "the sidecar closes the connection")
            self.assertEqual(peer.goaway, h2.PROTOCOL_ERROR)
        self.are_served()
        self.nothing_is_left()

    def test_rapid_resets_over_ever_new_connections(self):
        """Each connection has a budget of its own. Others are served all the same."""
        self.start()
        _, make, _ = FLOODS["rapid reset"]
        flood = b"".join(make(2 * number + 1) for number in range(1500))
        stop = threading.Event()
        rounds = [0] * ATTACKERS

        def attack(place):
            while not stop.is_set():
                peer = Peer(self.sidecar.port)
                peer.send(flood)
                until(lambda: peer.ended, 20, "the sidecar closes the connection")
                peer.close()
                rounds[place] += 1

        self.begin_measuring()
        threads = [threading.Thread(target=attack, args=(place,)) for place in range(ATTACKERS)]
        for thread in threads:
            thread.start()
        try:
            until(lambda: min(rounds) >= 5, 60, "each attacker has connected several times")
            self.are_served()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertGreaterEqual(self.floods("resets"), 5 * ATTACKERS)
        self.assertLess(self.grown(), ATTACKERS * CONNECTION_BYTES)
        self.nothing_is_left()

    def test_cancelled_requests_do_not_end_those_of_others_at_an_upstream_with_http2(self):
        """All clients share the connections to such an upstream, which ends a connection with too many resets."""
        released = threading.Event()

        def serve_slowly(connection, head):
            if head.startswith("GET /forever"):
                return connection.recv(1) != b""
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
            released.wait(60)
            connection.sendall(b"b")
            return True

        back = self.enterContext(Sidecar(Upstream(self, serve_slowly).port, args=ONE_LOOP))
        front = self.enterContext(Sidecar(back.port, args=ONE_LOOP, scheme="h2c"))
        others = [self.enterContext(contextlib.closing(http.client.HTTPConnection("127.0.0.1", front.port, timeout=20))) for _ in range(5)]
        for number, connection in enumerate(others):
            connection.request("GET", "/", headers={"X-Client-Id": f"client{number}"})
        answers = [connection.getresponse() for connection in others]
        self.assertEqual([answer.read(1) for answer in answers], [b"a"] * len(others))

        def attack():
            with contextlib.closing(Peer(front.port)) as peer:
                for first in range(1, 1000, 100):
                    streams = range(first, first + 100, 2)
                    peer.send(b"".join(get(stream, "/forever") for stream in streams))
                    wait(0.01)  # so that the upstream has most of them
                    peer.send(b"".join(h2.reset(stream) for stream in streams))
            return back.metric('headgate_proxy_requests_total{outcome="client_gone"}') >= 4000

        until(attack, 60, "the upstream has seen many resets")
        released.set()
        self.assertEqual([answer.read() for answer in answers], [b"b"] * len(others))
        self.assertEqual(back.metric('headgate_http2_floods_total{reason="resets"}'), 0)

    def test_a_hundred_streams_without_a_window(self):
        """They hold one window each, and end as slow readers. PINGs do not keep them."""
        self.start("--idle-timeout", "2s")
        self.begin_measuring()
        (peer,) = self.peers(1, first=h2.initial_window(0))
        peer.send(b"".join(get(2 * number + 1, "/page") for number in range(STREAMS)))
        until(lambda: peer.heads == STREAMS, 20, "all answers have begun")
        pings = 0

        def have_ended():
            nonlocal pings
            pings += 1
            if pings % 5 == 0:
                peer.send(PING)
            return self.outcomes("slow_reader") == STREAMS

        until(have_ended, 20, "the streams are given up")
        self.are_served()
        self.assertLess(self.grown(), STREAMS * STREAM_BYTES + CONNECTION_BYTES)
        self.nothing_is_left()
        self.assertEqual(peer.goaway, None)
        self.assertEqual(peer.resets, STREAMS)

    def test_slow_readers_of_many_streams(self):
        """They open all windows and read next to nothing. Output stops at its bound."""
        self.start("--idle-timeout", "2s")
        self.begin_measuring()
        windows = h2.initial_window(0x7FFFFFFF) + h2.window_update(0, 0x7FFFFFFF - h2.WINDOW_BYTES)
        peers = self.peers(reads=False, first=windows)
        for peer in peers:
            peer.send(b"".join(get(2 * number + 1, "/page") for number in range(STREAMS)))
        until(lambda: self.sidecar.metric("headgate_proxy_in_flight") >= ATTACKERS * STREAMS * 3 // 4, 20, "most streams have begun")

        def have_ended():
            for peer in peers:
                peer.read_some(512)
            return self.outcomes("slow_reader") == ATTACKERS * STREAMS

        until(have_ended, 30, "the streams are given up")
        self.are_served()
        self.assertLess(self.grown(), ATTACKERS * (STREAMS * STREAM_BYTES + CONNECTION_BYTES))
        self.nothing_is_left()

    def test_answers_that_stay_behind_windows(self):
        """Each of these answers fits into its stream's window, so the upstream is rid of it. All together have
        a bound, and connections that are closed for it are counted."""
        self.start()
        self.begin_measuring()
        peers = []

        def flood():
            peers.extend(self.peers(1, first=h2.initial_window(0)))
            peers[-1].send(b"".join(get(2 * number + 1, "/leaf") for number in range(STREAMS)))
            until(lambda: peers[-1].ended or peers[-1].heads == STREAMS, 20, "all answers have begun")
            return self.shed() > 0 or len(peers) == 90

        until(flood, 60, "connections are closed")
        self.assertGreater(self.shed(), 0)
        self.are_served()
        self.assertLess(self.grown(), ALL_BYTES * 9 // 8)

    def test_large_heads_of_few_bytes(self):
        """Each head is 60 KiB, and its client sends a hundred bytes for it. The upstream takes them and never
        answers."""
        upstream = SilentUpstream(self)
        self.sidecar = self.enterContext(Sidecar(upstream.port, args=ONE_LOOP, scheme="h2c"))
        self.begin_measuring()

        def have_come(count):
            return self.shed() > 0 or self.sidecar.metric("headgate_proxy_in_flight") >= count

        for number in range(60):
            client = h2.block(path="/", x_client_id=f"client{number}")
            first = client + b"\x40" + h2.text("x") + h2.text("a" * 3900) + b"\xbe" * 14
            blocks = (first, *[client + b"\xbe" * 15] * (STREAMS - 1))
            flags = h2.END_STREAM | h2.END_HEADERS
            (peer,) = self.peers(1)
            peer.send(b"".join(h2.frame(h2.HEADERS, flags, 2 * place + 1, block) for place, block in enumerate(blocks)))
            until(lambda number=number: have_come((number + 1) * STREAMS), 20, "its requests are sent")
        self.assertGreater(self.shed(), 0)
        self.assertLess(self.grown(), ALL_BYTES * 3 // 2)  # the text of heads counts, not their tables


if __name__ == "__main__":
    unittest.main()
