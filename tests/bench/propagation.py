"""How long a change of a rule takes until all of three instances have it, while they are under load.

    HEADGATE_BINARY=build/release/bin/headgate python3 tests/bench/propagation.py [zookeeper|files] [CHANGES]

Each instance is asked for its limit every few milliseconds. A change has arrived at an instance when
the answer shows the new limit. The time begins before the change is written.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from harness import BINARY, Headgate, until
from zookeeper import ZooKeeperServer

INSTANCES = 3
RATE = 2000  # requests per second to each instance, as load


def text(requests):
    return f"domain: d\ndescriptors:\n- key: k\n  rate_limit: {{unit: hour, requests_per_unit: {requests}}}\n"


class Poller(threading.Thread):
    """Asks one instance for the limit, and notes when it changes."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.seen = {}
        self.ended = False
        self.body = json.dumps({"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]})

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        while not self.ended:
            connection.request("POST", "/v1/peek", self.body, {"Content-Type": "application/json"})
            decision = json.loads(connection.getresponse().read())["decisions"][0]
            self.seen.setdefault(decision["limit"], time.monotonic())
            time.sleep(0.002)


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def measure(kind, changes):
    with ExitStack() as stack:
        if kind == "zookeeper":
            zookeeper = stack.enter_context(ZooKeeperServer())
            operator = zookeeper.client()
            operator.ensure_path("/rate-limiter/rules")
            operator.create("/rate-limiter/rules/d", text(1).encode())
            words = ("--watch", zookeeper.url())
            write = lambda requests: operator.set("/rate-limiter/rules/d", text(requests).encode())
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path = os.path.join(folder, "d.yaml")

            def write(requests):
                with open(path + ".new", "w", encoding="utf-8") as file:
                    file.write(text(requests))
                os.rename(path + ".new", path)

            write(1)
            words = ("--rules", folder)
        servers = [stack.enter_context(Headgate(*words, "--threads", "1")) for _ in range(INSTANCES)]
        for server in servers:
            until(lambda s=server: s.request("GET", "/readyz")[0] == 200, 20, "it is ready")
        seconds = changes * 0.1 + 10
        for server in servers:
            load = subprocess.Popen(
                (BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--rate", str(RATE), "--connections", "8", "--duration", f"{seconds:.0f}s"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(load.kill)
        pollers = [Poller(server) for server in servers]
        for poller in pollers:
            poller.start()
        times = []
        for requests in range(2, changes + 2):
            begin = time.monotonic()
            write(requests)
            until(lambda r=requests: all(r in poller.seen for poller in pollers), 20, "all instances have it")
            times.append(max(poller.seen[requests] for poller in pollers) - begin)
        for poller in pollers:
            poller.ended = True
            poller.join()
        print(
            f"{kind}: {changes} changes, {INSTANCES} instances, {RATE} requests/s each: "
            f"p50 {percentile(times, 0.5) * 1000:.0f} ms, p99 {percentile(times, 0.99) * 1000:.0f} ms, max {max(times) * 1000:.0f} ms"
        )


if __name__ == "__main__":
    kinds = [sys.argv[1]] if len(sys.argv) > 1 else ["zookeeper", "files"]
    for one in kinds:
        measure(one, int(sys.argv[2]) if len(sys.argv) > 2 else 200)
