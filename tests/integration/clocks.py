"""Clocks of a process that a test can set: see shifted_clock.c."""

import os
import struct

from harness import INTEGRATION, require, run


class ShiftedClock:
    """Pass `env` to the process. The test may set `boottime` and `time_of_day`, the offsets in
    seconds, while the process runs."""

    def __init__(self, test, folder):
        require("cc")
        library = os.path.join(folder, "shifted_clock.so")
        if not os.path.exists(library):
            built = run("cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(INTEGRATION, "shifted_clock.c"), "-ldl")
            test.assertEqual(built.returncode, 0, built.stderr)
        self._path = next(p for p in (os.path.join(folder, f"clock{i}") for i in range(100)) if not os.path.exists(p))
        with open(self._path, "wb") as file:
            file.write(bytes(16))
        # A sanitizer would otherwise insist on being loaded first.
        self.env = {"LD_PRELOAD": library, "SHIFTED_CLOCK": self._path, "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def set(self, boottime=0, time_of_day=0):
        with open(self._path, "r+b") as file:
            file.write(struct.pack("=qq", int(boottime * 1e9), int(time_of_day * 1e9)))
