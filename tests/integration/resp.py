"""The Redis protocol, as a client speaks it."""

import collections

import hiredis

PIECE_BYTES = 1 << 16


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words))


class Replies:
    """Reads RESP2 replies from a connection, one after another; an error becomes an exception in its
    place."""

    def __init__(self, connection):
        self._connection = connection
        self._reader = hiredis.Reader(encoding="utf-8", errors="replace")
        self._ready = collections.deque()

    def next(self):
        return self.take(1)[0]

    def take(self, count):
        while len(self._ready) < count:
            piece = self._connection.recv(PIECE_BYTES)
            if not piece:
                raise EOFError("the connection ended")
            self._reader.feed(piece)
            while (reply := self._reader.gets()) is not False:
                self._ready.append(reply)
        return [self._ready.popleft() for _ in range(count)]


def as_text(reply):
    """A reply as redis-cli prints it without a terminal."""
    if isinstance(reply, list):
        return "\n".join(map(as_text, reply))
    return "" if reply is None else str(reply)
