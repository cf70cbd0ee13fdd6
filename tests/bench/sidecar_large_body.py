#!/usr/bin/env python3
"""Sends one very large body up and one down through `headgate sidecar`, checks each byte at the other
end, and measures the rate and how much the memory of the sidecar grows meanwhile.

    /usr/bin/python3 tests/bench/sidecar_large_body.py [--mib N]

Nothing is written to a disk: both ends make the same bytes, and compare. Everything shares the cores
of this machine. Expected: less than 1 MiB of growth for each body, whatever its size. Ends with status
1 if a byte differs or the growth is larger."""

import argparse
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import threading
import time

from http_against_nginx import wait_for
from processes import cpu_seconds, free_port

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import http2_frames as h2  # pylint: disable=wrong-import-position

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
HEADGATE = os.environ.get("HEADGATE_BINARY", os.path.join(ROOT, "build/release/bin/headgate"))
PIECE = 1 << 20
GROWTH_MAX = 1 << 20
# The sidecar's HTTP version towards the client and towards the upstream.
PATHS = (("1.1", "1.1"), ("2", "1.1"), ("2", "2"))


class Pattern:
    """An endless body: random bytes, and in each 4 KiB the number of the piece, so that no two places
    look the same."""

    def __init__(self):
        self._bytes = bytearray(random.Random(1).randbytes(PIECE))

    def piece(self, number):
        for place, byte in enumerate(number.to_bytes(4, "big")):
            self._bytes[place::4096] = bytes((byte,)) * (PIECE // 4096)
        return self._bytes


def send_body(write, size):
    pattern = Pattern()
    for number in range(size // PIECE):
        write(pattern.piece(number))


def check_body(read_into, size):
    """How many bytes are right, up to the first piece with a wrong one."""
    pattern = Pattern()
    buffer = bytearray(PIECE)
    for number in range(size // PIECE):
        read_into(memoryview(buffer))
        if buffer != pattern.piece(number):
            return number * PIECE
    return size


class Wire:
    def __init__(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.write = connection.sendall
        self._connection = connection

    def read_into(self, view):
        while view:
            size = self._connection.recv_into(view, len(view), socket.MSG_WAITALL)
            if not size:
                raise EOFError("the connection ended")
            view = view[size:]

    def read(self, size):
        buffer = bytearray(size)
        self.read_into(memoryview(buffer))
        return bytes(buffer)

    def read_head(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.read(1)
        return head.decode()


def length_of(head):
    return int(head.lower().split("content-length: ")[1].split("\r\n")[0])


class Http1:
    """The client's end of a connection."""

    def __init__(self, port):
        self._wire = Wire(socket.create_connection(("127.0.0.1", port)))

    def upload(self, size):
        """How many bytes the upstream has found right."""
        self._wire.write(b"PUT / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\nContent-Length: %d\r\n\r\n" % size)
        send_body(self._wire.write, size)
        return int(self._wire.read(length_of(self._wire.read_head())))

    def download(self, size):
        self._wire.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n")
        return check_body(self._wire.read_into, size) if length_of(self._wire.read_head()) == size else 0


class Streams:
    """One stream after the other on a connection of HTTP/2, for either end."""

    WINDOW = 4 << 20

    def __init__(self, connection):
        self._wire = Wire(connection)
        self._windows = [h2.WINDOW_BYTES, h2.WINDOW_BYTES]  # of the connection and of the stream
        self._initial = h2.WINDOW_BYTES
        self._stream = 0
        self._data_left = 0  # of the DATA frame that is being read
        self._ended = False

    def begin(self):
        self._wire.write(h2.initial_window(self.WINDOW) + h2.window_update(0, self.WINDOW - h2.WINDOW_BYTES))
        while self._step()[0] != h2.SETTINGS:
            pass

    def open(self, stream):
        self._stream, self._ended, self._data_left = stream, False, 0
        self._windows[1] = self._initial

    def read_headers(self):
        """(stream, whether it ends there)"""
        while True:
            kind, flags, stream = self._step()
            if kind == h2.HEADERS:
                return stream, bool(flags & h2.END_STREAM)

    def write(self, piece):
        view = memoryview(piece)
        while view:
            room = min(*self._windows, len(view))
            if room <= 0:
                self._step()
                continue
            parts = []
            for first in range(0, room, h2.FRAME_BYTES_MAX):
                part = view[first : min(first + h2.FRAME_BYTES_MAX, room)]
                parts += (h2.frame_header(len(part), h2.DATA, 0, self._stream), part)
            self._wire.write(b"".join(parts))
            self._windows = [window - room for window in self._windows]
            view = view[room:]

    def write_end(self):
        self._wire.write(h2.frame(h2.DATA, h2.END_STREAM, self._stream))

    def read_into(self, view):
        size = len(view)
        while view:
            while not self._data_left:
                if self._ended:
                    raise EOFError("the stream ended")
                self._step()
            part = view[: self._data_left]
            self._wire.read_into(part)
            self._data_left -= len(part)
            view = view[len(part) :]
        self._wire.write(h2.window_update(0, size) + (h2.window_update(self._stream, size) if not self._ended else b""))

    def read_end(self):
        while not self._ended:
            self._step()
        return not self._data_left

    def write_frames(self, frames):
        self._wire.write(frames)

    def _step(self):
        """Reads one frame, but not the bytes of DATA."""
        size, kind, flags, stream = h2.parse_frame_header(self._wire.read(9))
        if kind == h2.DATA:
            self._data_left = size
            self._ended = bool(flags & h2.END_STREAM)
            return kind, flags, stream
        payload = self._wire.read(size)
        if kind == h2.SETTINGS and not flags & h2.ACK:
            for place in range(0, size, 6):
                if int.from_bytes(payload[place : place + 2], "big") == h2.INITIAL_WINDOW_SIZE:
                    self._initial = int.from_bytes(payload[place + 2 : place + 6], "big")
            self._wire.write(h2.frame(h2.SETTINGS, h2.ACK, 0))
        elif kind == h2.PING and not flags & h2.ACK:
            self._wire.write(h2.frame(h2.PING, h2.ACK, 0, payload))
        elif kind == h2.WINDOW_UPDATE and stream in (0, self._stream):
            self._windows[stream > 0] += int.from_bytes(payload, "big")
        elif kind in (h2.GOAWAY, h2.RST_STREAM) and int.from_bytes(payload[-4:], "big"):
            raise EOFError(f"frame {kind} of stream {stream}: {payload.hex()}")
        elif kind == h2.HEADERS:
            self._ended = bool(flags & h2.END_STREAM)
        return kind, flags, stream


class Http2:
    """The client's end of a connection."""

    def __init__(self, port):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(h2.PREFACE)
        self._streams = Streams(connection)
        self._streams.begin()
        self._next = 1

    def _open(self, method, flags, **fields):
        self._streams.write_frames(h2.headers(self._next, flags, method=method, x_client_id="ann", **fields))
        self._streams.open(self._next)
        self._next += 2

    def upload(self, size):
        self._open("PUT", 0, content_length=str(size))
        send_body(self._streams.write, size)
        self._streams.write_end()
        self._streams.read_headers()
        answer = bytearray(20)
        self._streams.read_into(memoryview(answer))
        return int(answer)

    def download(self, size):
        self._open("GET", h2.END_STREAM)
        self._streams.read_headers()
        right = check_body(self._streams.read_into, size)
        return right if right < size or self._streams.read_end() else 0


def serve_http1(connection, size):
    wire = Wire(connection)
    while True:
        head = wire.read_head()
        if head.startswith("GET"):
            wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            send_body(wire.write, size)
        else:
            right = check_body(wire.read_into, length_of(head))
            wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n%20d" % right)


def serve_http2(connection, size):
    Wire(connection).read(len(h2.PREFACE))
    streams = Streams(connection)
    streams.begin()
    sizes = [PIECE, size]  # the bodies of the first and of the second upload
    while True:
        stream, has_ended = streams.read_headers()
        streams.open(stream)
        head = h2.frame(h2.HEADERS, h2.END_HEADERS, stream, b"\x88")
        if has_ended:
            streams.write_frames(head)
            send_body(streams.write, size)
        else:
            right = check_body(streams.read_into, sizes.pop(0))
            right = right if streams.read_end() else 0
            streams.write_frames(head)
            streams.write(b"%20d" % right)
        streams.write_end()


def run_upstream(listener, serve, size):
    def talk(connection):
        try:
            serve(connection, size)
        except (EOFError, OSError):
            pass

    while True:
        threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()


def status_bytes(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(status.read().split(f"{name}:")[1].split()[0]) << 10


def start_sidecar(upstream_version, upstream_port):
    port = free_port()
    scheme = "h2c" if upstream_version == "2" else "http"
    words = [HEADGATE, "sidecar", "--listen", f"127.0.0.1:{port}", "--upstream", f"{scheme}://127.0.0.1:{upstream_port}"]
    words += ["--capacity", "1000000", "--threads", "1", "--admin-listen", "none", "--log-level", "error"]
    sidecar = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wait_for(port)
    return sidecar, port


def measure(versions, direction, size):
    """Prints a line. Returns whether the body was right and the memory stayed."""
    listener = socket.create_server(("127.0.0.1", 0))
    serve = serve_http2 if versions[1] == "2" else serve_http1
    upstream = multiprocessing.Process(target=run_upstream, args=(listener, serve, size), daemon=True)
    upstream.start()
    sidecar, port = start_sidecar(versions[1], listener.getsockname()[1])
    try:
        client = (Http2 if versions[0] == "2" else Http1)(port)
        if client.upload(PIECE) != PIECE:
            raise SystemExit("the first body was not right")
        with open(f"/proc/{sidecar.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak is the present size
        before, cpu, start = status_bytes(sidecar.pid, "VmHWM"), cpu_seconds(sidecar.pid), time.monotonic()
        right = getattr(client, direction)(size)
        seconds = time.monotonic() - start
        growth, cpu = status_bytes(sidecar.pid, "VmHWM") - before, cpu_seconds(sidecar.pid) - cpu
    finally:
        sidecar.kill()
        sidecar.wait()
        upstream.terminate()
        listener.close()
    result = "every byte is right" if right == size else f"WRONG after {right} bytes"
    print(f"HTTP/{versions[0]:3} to HTTP/{versions[1]:3} {direction:8} {size >> 20:6} MiB  {result}  {size / seconds / 1e6:5.0f} MB/s  "
          f"CPU {cpu / size * 2**30:4.2f} s/GiB  memory {before >> 10} KiB {growth // 1024:+d} KiB", flush=True)
    return right == size and growth <= GROWTH_MAX


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=10_240, help="size of each body")
    size = parser.parse_args().mib * PIECE
    results = [measure(versions, direction, size) for versions in PATHS for direction in ("upload", "download")]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
