"""Many large bodies at once pass through the sidecar byte by byte, and none gathers in its memory.
HEADGATE_STREAM_MIB=10240 does it with 10 GiB."""

import os
import re
import subprocess
import unittest

from harness import Sidecar, require, run
from test_sidecar import MIB, peak_memory, sha256
from upstreams import Nginx

SIZE = int(os.environ.get("HEADGATE_STREAM_MIB", "24")) * MIB
STREAMS = 8


class Streams(unittest.TestCase):
    def setUp(self):
        self.nginx = Nginx(self)
        self.sidecar = self.enterContext(Sidecar(self.nginx.port))
        self.url = f"http://127.0.0.1:{self.sidecar.port}"
        self.big = self.nginx.path("big")
        with open(self.big, "wb") as file:
            piece = os.urandom(MIB)
            for number in range(SIZE // MIB):
                # No two pieces are equal.
                file.write(number.to_bytes(4, "big") + piece[4:])
        self.sum = sha256(self.big)

    def start(self, *words):
        return subprocess.Popen(("curl", "--silent", "--show-error", "--fail", "-H", "X-Client-Id: ann", *words))

    def down(self, version, number):
        return self.start(version, "--output", os.path.join(self.nginx.folder, f"down{number}"), f"{self.url}/big")

    def up(self, version, number):
        return self.start(version, "--upload-file", self.big, f"{self.url}/put/up{number}")

    def check(self, start):
        """All streams at once; `start` begins both directions of one."""
        self.assertEqual(self.sidecar.request("GET", "/small", headers={"X-Client-Id": "ann"})[0], 200)
        before = peak_memory(self.sidecar.process)
        for process in [process for number in range(STREAMS // 2) for process in start(number)]:
            self.assertEqual(process.wait(), 0)
        self.assertLess(peak_memory(self.sidecar.process) - before, STREAMS * MIB)
        for number in range(STREAMS // 2):
            self.assertEqual(sha256(os.path.join(self.nginx.folder, f"down{number}")), self.sum)
            self.assertEqual(sha256(self.nginx.path(f"put/up{number}")), self.sum)

    def test_http1(self):
        self.check(lambda number: (self.down("--http1.1", number), self.up("--http1.1", number)))

    def test_http2(self):
        version = "--http2-prior-knowledge"
        self.check(lambda number: (self.down(version, number), self.up(version, number)))

    def test_streams_of_one_connection(self):
        require("h2load")
        before = peak_memory(self.sidecar.process)
        done = run("h2load", "-n", str(STREAMS), "-c", "1", "-m", str(STREAMS), "-H", "X-Client-Id: ann", f"{self.url}/big", timeout=3600)
        self.assertIn(f"{STREAMS} succeeded, 0 failed", done.stdout)
        self.assertEqual(int(re.search(r"\((\d+)\) data", done.stdout).group(1)), STREAMS * SIZE)
        self.assertLess(peak_memory(self.sidecar.process) - before, STREAMS * MIB)


if __name__ == "__main__":
    unittest.main()
