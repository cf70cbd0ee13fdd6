#!/usr/bin/env python3
"""Measures the memory of a bucket in Redis: MEMORY USAGE of one bucket with a name of 40 bytes, and
the growth of the server for 100,000 buckets, including its tables.

    tests/bench/store_memory.py --headgate build/release/bin/headgate
"""

import argparse
import re
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack

from against_redis import free_port, wait_until_answering

RULES = """domain: edge
descriptors:
  - key: bucket
    rate_limit: {requests_per_unit: 1000, unit: hour, algorithm: token_bucket}
  - key: meter
    rate_limit: {requests_per_unit: 1000, unit: hour, algorithm: leaky_bucket}
  - key: queue
    rate_limit: {requests_per_unit: 1000, unit: hour, algorithm: leaky_bucket, queue: true}
  - key: window
    rate_limit: {requests_per_unit: 1000, unit: hour, algorithm: fixed_window}
  - key: counter
    rate_limit: {requests_per_unit: 1000, unit: hour, algorithm: sliding_window_counter}
  - key: log
    rate_limit: {requests_per_unit: 50, unit: minute, algorithm: sliding_window_log}
"""
NAME_BYTES = 40
MANY = 100_000
SECONDS = 3  # with leases, which live for 2


def name_of(rule, value):
    return f"hg:{{r|edge|{rule}={value}#0}}"


def value_for(rule, letter):
    """Makes the bucket's name 40 bytes long."""
    return letter * (NAME_BYTES - len(name_of(rule, "")))


class Server:
    """Returns the reply to a command, as redis-cli prints it."""

    def __init__(self, words, stack):
        self.port = free_port()
        self.process = subprocess.Popen([w.replace("PORT", str(self.port)) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        wait_until_answering(self.port)

    def __call__(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], check=True, capture_output=True, text=True).stdout

    def used(self):
        return int(re.search(r"used_memory:(\d+)", self("INFO", "memory")).group(1))


def throttle_many(instance, values):
    """Sends one request for each, pipelined."""
    with socket.create_connection(("127.0.0.1", instance.port)) as connection, connection.makefile("rb") as replies:
        for i in range(0, len(values), 100):
            connection.sendall("".join(f"CL.THROTTLE {value} 1000 1000 3600\r\n" for value in values[i : i + 100]).encode())
            for _ in range(6 * len(values[i : i + 100])):
                replies.readline()


def show(what, size):
    print(f"  {what:28} {size:5}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headgate", required=True, help="the binary")
    binary = parser.parse_args().headgate
    with ExitStack() as stack, tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules:
        rules.write(RULES)
        rules.flush()
        redis = Server(["redis-server", "--port", "PORT", "--save", "", "--appendonly", "no"], stack)

        def instance(sharing):
            words = ["--rules", rules.name, "--store", f"redis://127.0.0.1:{redis.port}", "--sharing", sharing, "--threads", "1"]
            words += ["--listen", "127.0.0.1:PORT", "--admin-listen", "none", "--store-timeout", "2s", "--store-connect-timeout", "2s"]
            return Server([binary, "serve", *words], stack)

        def bytes_of(rule, value):
            return int(redis("MEMORY", "USAGE", name_of(rule, value)))

        print(redis("INFO", "server").split("redis_version:")[1].split()[0], "bytes of one key:")
        exact = instance("exact")
        time.sleep(0.5)  # until it has connected to the store
        for rule in ("bucket", "meter", "queue", "window", "counter"):
            value = value_for(rule, "e")
            exact("HG.CHECK", "edge", "ENTRIES", "1", rule, value)
            show(f"{rule}, exact", bytes_of(rule, value))

        value, holders = value_for("bucket", "l"), [instance("leased") for _ in range(2)]
        time.sleep(0.5)
        for count, holder in enumerate(holders, 1):
            sizes = set()
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                for each in holders[:count]:
                    each("HG.CHECK", "edge", "ENTRIES", "1", "bucket", value)
                sizes.add(bytes_of("bucket", value))
            show(f"bucket, leased by {count}, at most", max(sizes))

        value = value_for("log", "h")
        for hits in range(1, 51):
            exact("HG.CHECK", "edge", "ENTRIES", "1", "log", value)
            if hits in (1, 10, 50):
                show(f"log of {hits} hits", bytes_of("log", value))

        before, values = redis.used(), [f"{i:033d}" for i in range(MANY)]
        throttle_many(exact, values)
        print(f"{MANY} exact token buckets, used_memory: {(redis.used() - before) / MANY:.0f} bytes each")


if __name__ == "__main__":
    main()
