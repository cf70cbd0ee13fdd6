"""Frames of HTTP/2, written by this file alone, so that a test can send any of them, also frames
that a library would refuse to send."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# Frame types and flags of RFC 9113, 6.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 0x1
END_HEADERS = 0x4
# Error codes of RFC 9113, 7.
NO_ERROR, PROTOCOL_ERROR, CANCEL, ENHANCE_YOUR_CALM = 0x0, 0x1, 0x8, 0xB
# Settings of RFC 9113, 6.5.2.
INITIAL_WINDOW_SIZE = 0x4
FRAME_BYTES_MAX = 16_384
WINDOW_BYTES = 65_535  # of a stream and of a connection, unless settings say otherwise


def frame(kind, flags, stream, payload=b""):
    return frame_header(len(payload), kind, flags, stream) + payload


def frame_header(size, kind, flags, stream):
    return struct.pack(">IBI", size << 8 | kind, flags, stream)


def parse_frame_header(header):
    """(size, kind, flags, stream)"""
    size_and_kind, flags, stream = struct.unpack(">IBI", header)
    return size_and_kind >> 8, size_and_kind & 0xFF, flags, stream & 0x7FFFFFFF


def initial_window(size):
    """A SETTINGS frame with the window that each stream begins with."""
    return frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, size))


def window_update(stream, size):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


def reset(stream, error=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", error))


def integer(value, prefix_bits, first):
    """An integer of RFC 7541, 5.1, after the bits `first` of the first byte."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes((first | value,))
    value -= most
    rest = b""
    while value >= 128:
        rest += bytes((value % 128 + 128,))
        value >>= 7
    return bytes((first | most,)) + rest + bytes((value,))


def text(value):
    return integer(len(value), 7, 0) + value.encode()


def literal(name, value):
    """A field without indexing (RFC 7541, 6.2.2)."""
    return b"\0" + text(name) + text(value)


def block(method="GET", path="/", **fields):
    """A header block; `_` in the name of a field is `-`."""
    pseudo = {":method": method, ":scheme": "http", ":path": path, ":authority": "a.example"}
    names = {name.replace("_", "-"): value for name, value in fields.items()}
    return b"".join(literal(name, value) for name, value in {**pseudo, **names}.items())


def headers(stream, flags=END_STREAM, **fields):
    return frame(HEADERS, flags | END_HEADERS, stream, block(**fields))


def is_ok(header_block):
    """Whether an answer has status 200, which all encoders write as one byte of the static table."""
    if header_block and header_block[0] & 0xE0 == 0x20:  # a change of the table's size comes first
        header_block = header_block[1:]
    return header_block.startswith(b"\x88")
