#!/usr/bin/env python3
"""Compares two builds of Headgate under the same load, in turns: requests per second of each
server's CPU.

The load is CL.THROTTLE from redis-benchmark, and POST /v1/check from this script, pipelined and one
at a time. The figure is the CPU time (user and system) that the server's process used, so other
work on the machine disturbs little. The ratio is the median of the rounds' ratios.

    tests/bench/compare.py --before OLD/bin/headgate --after build/release/bin/headgate
"""

import argparse
import pathlib
import selectors
import socket
import statistics
import subprocess
import tempfile

from against_redis import BURST, COUNT, PERIOD, benchmark, free_port, wait_until_answering

RULES = """
domain: edge
descriptors:
  - key: api_key
    rate_limit: {unit: second, requests_per_unit: 1000000}
"""
BODY = b'{"domain":"edge","descriptors":[{"entries":[{"key":"api_key","value":"k1"}]}]}'
REQUEST = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY), BODY)


def cpu_seconds(pid):
    """Sums all threads, to the nanosecond; the ticks of /proc/PID/stat are too coarse for a few per
    cent."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9


class Connection:
    """Keeps `pipeline` requests in flight."""

    def __init__(self, port, requests, pipeline):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.left = requests // pipeline
        self.batch = REQUEST * pipeline
        self.pipeline = pipeline
        self.answers = 0
        self.tail = b""
        self.socket.sendall(self.batch)

    def read(self):
        """Returns False when all requests are answered."""
        data = self.socket.recv(1 << 18)
        assert data, "the server closed a connection"
        self.answers += (self.tail + data).count(b"HTTP/1.1 200 OK\r\n")
        self.tail = data[-16:]  # shorter than the measured time
        if self.answers < self.pipeline:
            return True
        assert self.answers == self.pipeline
        self.answers = 0
        self.left -= 1
        if self.left > 0:
            self.socket.sendall(self.batch)
        return self.left > 0


def post_checks(port, requests, pipeline, connections=16):
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        connection = Connection(port, requests // connections, pipeline)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    while selector.get_map():
        for key, _ in selector.select():
            if not key.data.read():
                selector.unregister(key.fileobj)
                key.fileobj.close()


def throttle(port, requests, pipeline):
    benchmark(port, requests, pipeline, 10_000, ["CL.THROTTLE", "user:__rand_int__", BURST, COUNT, PERIOD])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="a binary")
    parser.add_argument("--after", required=True, help="another")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    servers = {}
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder, "rules.yaml")
        rules.write_text(RULES, encoding="utf-8")
        try:
            for side in ("before", "after"):
                port = free_port()
                process = subprocess.Popen(
                    [getattr(options, side), "serve", "--rules", str(rules), "--listen", f"127.0.0.1:{port}",
                     "--admin-listen", "none", "--threads", "1"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                servers[side] = (process, port)
                wait_until_answering(port)
            for name, load, pipeline, requests in (
                    ("CL.THROTTLE", throttle, 32, 1_000_000), ("CL.THROTTLE", throttle, 1, 100_000),
                    ("POST /v1/check", post_checks, 32, 160_000), ("POST /v1/check", post_checks, 1, 48_000)):
                rates = {side: [] for side in servers}
                for round_number in range(options.rounds + 1):
                    for side, (process, port) in servers.items():
                        spent = -cpu_seconds(process.pid)
                        load(port, requests, pipeline)
                        spent += cpu_seconds(process.pid)
                        if round_number > 0:  # the first one warms up
                            rates[side].append(requests / spent)
                ratios = sorted(after / before for before, after in zip(rates["before"], rates["after"]))
                print(f"{name}, pipeline {pipeline}: " + ", ".join(
                    f"{side} {statistics.median(values):,.0f} per CPU second ({1e6 / statistics.median(values):.2f} µs each)"
                    for side, values in rates.items())
                    + f", ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})", flush=True)
        finally:
            for process, _ in servers.values():
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
