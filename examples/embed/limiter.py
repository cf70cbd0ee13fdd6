"""The C interface from Python, with nothing but ctypes:

  python3 limiter.py [LIBRARY]

LIBRARY is a path, or the name of an installed library (default: libheadgate.so)."""

import ctypes
import os
import sys


class Entry(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Verdict(ctypes.Structure):
    _fields_ = [
        ("allowed", ctypes.c_int32),
        ("limited", ctypes.c_int32),
        ("limit", ctypes.c_uint64),
        ("remaining", ctypes.c_uint64),
        ("retry_after", ctypes.c_int64),
        ("reset_after", ctypes.c_int64),
        ("wait", ctypes.c_int64),
    ]


class Limiter:
    """Rules of one line each: "api_key: 100/minute burst 20"."""

    def __init__(self, library, *rules):
        self._library = library
        library.headgate_new.restype = ctypes.c_void_p
        library.headgate_check.argtypes = [ctypes.c_void_p, ctypes.POINTER(Entry), ctypes.c_size_t, ctypes.c_uint64, ctypes.POINTER(Verdict)]
        library.headgate_free.argtypes = [ctypes.c_void_p]
        error = ctypes.create_string_buffer(1000)
        self._limiter = library.headgate_new("\n".join(rules).encode(), error, ctypes.c_size_t(len(error)))
        if not self._limiter:
            raise ValueError(error.value.decode())

    def close(self):
        self._library.headgate_free(self._limiter)
        self._limiter = None

    def check(self, cost=1, **entries):
        array = (Entry * len(entries))(*(Entry(key.encode(), value.encode()) for key, value in entries.items()))
        verdict = Verdict()
        result = self._library.headgate_check(self._limiter, array, len(array), cost, ctypes.byref(verdict))
        if result != 0:
            raise ValueError(f"headgate_check returned {result}")
        return verdict


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "libheadgate.so"
    # Without a slash the system looks only in its own folders.
    path = os.path.abspath(name) if os.path.exists(name) else name
    limiter = Limiter(ctypes.CDLL(path), "api_key: 2/minute")
    for name in ("ann", "ann", "ann", "bob"):
        answer = limiter.check(api_key=name)
        print(f"{name} passes, {answer.remaining} left" if answer.allowed else f"{name} waits {-(-answer.retry_after // 10**9)} s")
    limiter.close()
