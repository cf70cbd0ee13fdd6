"""Load for a SPOE agent, as HAProxy sends it: several messages in one write on each connection, each
with another key."""

import socket
import struct
import time

HELLO, NOTIFY, DISCONNECT, ACK = 1, 3, 102, 103


def varint(number):
    if number < 240:
        return bytes([number])
    out = [number & 255 | 240]
    number = (number - 240) >> 4
    while number >= 128:
        out.append(number & 127 | 128)
        number = (number - 128) >> 7
    return bytes([*out, number])


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(len(data)) + data


def text_value(value, kind=8):
    return bytes([kind]) + text(value)


def frame(kind, stream, payload):
    body = bytes([kind]) + b"\0\0\0\1" + varint(stream) + varint(1 if stream else 0) + payload
    return struct.pack(">I", len(body)) + body


def hello():
    return frame(
        HELLO,
        0,
        text("supported-versions")
        + text_value("2.0")
        + text("max-frame-size")
        + b"\3"
        + varint(16380)
        + text("capabilities")
        + text_value("pipelining,async"),
    )


def check(stream, headers):
    """The message of examples/haproxy, for a GET of /auth."""
    block = b"".join(text(name) + text(value) for name, value in headers) + b"\0\0"
    parts = {
        "src": b"\6" + socket.inet_aton("127.0.0.1"),
        "method": text_value("GET"),
        "path": text_value("/auth"),
        "query": text_value(""),
        "host": text_value("127.0.0.1"),
        "headers": text_value(block, kind=9),
    }
    payload = text("check") + bytes([len(parts)]) + b"".join(text(name) + value for name, value in parts.items())
    return frame(NOTIFY, stream, payload)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.rest = b""
        self.socket.sendall(hello())
        self.read(1)

    def read(self, frames):
        """Reads this many frames; none may end the connection."""
        while frames > 0:
            self.rest += self.socket.recv(1 << 16)
            at = 0
            while len(self.rest) >= at + 5:
                size = struct.unpack_from(">I", self.rest, at)[0]
                if len(self.rest) < at + 4 + size:
                    break
                if self.rest[at + 4] == DISCONNECT:
                    raise SystemExit(f"the agent ended the connection: {self.rest[at:]!r}")
                at += 4 + size
                frames -= 1
            self.rest = self.rest[at:]


def run(port, seconds, keys, connections=8, depth=32):
    """Returns the number of messages that were answered."""
    batches = [
        b"".join(
            check(1 + at, [("host", "127.0.0.1"), ("x-api-key", f"key{(base + at) * 7919 % keys}")]) for at in range(depth)
        )
        for base in range(0, keys, depth)
    ]
    open_connections = [Connection(port) for _ in range(connections)]
    answered, at = 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for connection in open_connections:
            connection.socket.sendall(batches[at])
            at = (at + 1) % len(batches)
        for connection in open_connections:
            connection.read(depth)
            answered += depth
    for connection in open_connections:
        connection.socket.close()
    return answered
