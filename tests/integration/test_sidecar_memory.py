"""The memory of connections that have ended goes back to the system."""

import re
import unittest

from harness import Sidecar, until
from http2_frames import PREFACE, SETTINGS, frame
from upstreams import Upstream

CONNECTIONS = 2000
MIB = 1 << 20


def memory(process):
    """VmRSS of the process, in bytes."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) << 10


class Memory(unittest.TestCase):
    def test_idle_connections_of_http2(self):
        upstream = Upstream(self, lambda connection, _: False)
        sidecar = self.enterContext(Sidecar(upstream.port, args=("--threads", "2")))
        before = memory(sidecar.process)
        clients = [sidecar.connect() for _ in range(CONNECTIONS)]
        for client in clients:
            client.sendall(PREFACE + frame(SETTINGS, 0, 0))
        until(lambda: memory(sidecar.process) > before + 15 * MIB, 10, "each has about 10 KiB")
        # A peak is noticed if it lasts for a second.
        uptime = lambda: sidecar.metric("headgate_uptime_seconds")
        end = uptime() + 2
        until(lambda: uptime() >= end, 10, "time passes")
        for client in clients:
            client.close()
        until(lambda: memory(sidecar.process) < before + 5 * MIB, 10, "the memory is returned")


if __name__ == "__main__":
    unittest.main()
