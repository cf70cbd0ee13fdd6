#!/usr/bin/env python3
"""Measures decisions per second and key of the strict store, with a real ZooKeeper or a server of
DynamoDB's protocol (dynalite): one hot key and many keys, exact and leased, with one instance and
with three; and one key by compare-and-set against one under a lock (`strict: lock`).

The load (`headgate bench`, closed loop), the instances and the service share all cores. ZooKeeper
writes each transaction to the disk, except with --no-disk-sync; dynalite keeps its tables in memory.

    /usr/bin/python3 tests/bench/strict.py --headgate build/release/bin/headgate
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("HEADGATE_BINARY", "build/release/bin/headgate")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from dynamodb import KEYS, NO_KEYS, Dynalite  # noqa: E402
import harness  # noqa: E402
from harness import Headgate, run, until  # noqa: E402
from zookeeper import ZooKeeperEnsemble, ZooKeeperServer  # noqa: E402

RULES = """domain: edge
descriptors:
  - key: api_key
    rate_limit: {requests_per_unit: 1, period: 8760h}
  - key: fought
    rate_limit: {requests_per_unit: 100000000, period: 8760h}
  - key: locked
    rate_limit: {requests_per_unit: 100000000, period: 8760h, strict: lock}
"""


class DynamoDb(Dynalite):
    """With the interface of the ZooKeeper servers; a table for each path."""

    def url(self, path):
        url = super().url(table="bench-" + path.strip("/"))
        run(os.environ["HEADGATE_BINARY"], "store", "create-table", url, check=True)
        return url


def bench(binary, server, seconds, *words):
    done = subprocess.Popen(
        [binary, "bench", "--json", "--server", f"127.0.0.1:{server.port}", "--duration", f"{seconds}s", *words],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    return done


def measure(binary, title, servers, seconds, *words):
    """Each instance gets the load of one bench at the same time."""
    before = sum(s.metric('headgate_store_calls_total{outcome="answered"}') for s in servers)
    retries = sum(s.metric("headgate_store_retries_total") for s in servers)
    runs = [bench(binary, server, seconds, *words) for server in servers]
    reports = [json.loads(run.communicate()[0]) for run in runs]
    calls = sum(s.metric('headgate_store_calls_total{outcome="answered"}') for s in servers) - before
    retries = sum(s.metric("headgate_store_retries_total") for s in servers) - retries
    rate = sum(r["rate"] for r in reports)
    errors = sum(r["errors"] for r in reports)
    middle, last = (max(r["latency_ms"]["percentiles"][p] for r in reports) for p in ("50", "99"))
    print(f"  {title:52} {rate:10,.0f}/s   p50 {middle:6.2f} ms   p99 {last:7.2f} ms   {calls / seconds:7,.0f} calls/s"
          f"   {retries / seconds:6,.0f} lost/s   {errors} errors", flush=True)


def measure_locks(binary, servers, seconds):
    for key in ("fought", "locked"):
        words = ("--http", "--domain", "edge", "--key", key, "--keys", "1")
        measure(binary, f"one key ({key}), one connection", servers, seconds, *words, "--connections", "1")
        measure(binary, f"one key ({key}), 50 connections each", servers, seconds, *words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headgate", default="build/release/bin/headgate")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--no-disk-sync", action="store_true")
    parser.add_argument("--ensemble", action="store_true", help="three servers that do not wait for the disk")
    parser.add_argument("--locks", action="store_true", help="only one key, with and without a lock, in ZooKeeper")
    parser.add_argument("--dynamodb", action="store_true", help="dynalite in place of ZooKeeper")
    options = parser.parse_args()
    binary, seconds = options.headgate, options.seconds
    sync = "" if options.no_disk_sync else "forceSync=yes\n"
    harness.BINARY = os.environ["HEADGATE_BINARY"] = os.path.abspath(binary)
    if options.dynamodb:
        os.environ.update({**NO_KEYS, **KEYS})
        service = DynamoDb()
    else:
        service = ZooKeeperEnsemble() if options.ensemble else ZooKeeperServer(sync)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules, service as store:
        rules.write(RULES)
        rules.flush()
        for sharing in ("exact",) if options.locks else ("exact", "leased"):
            servers = []
            url = store.url("/" + sharing)
            for count in (1, 3):
                while len(servers) < count:
                    servers.append(Headgate("--store", url, "--sharing", sharing, "--threads", "1", "--rules", rules.name))
                until(lambda: servers[-1].metric("headgate_instances") == count, 20, "all are counted")
                print(f"{sharing}, instances: {count}")
                if options.locks:
                    measure_locks(binary, servers, seconds)
                    continue
                if sharing == "exact":
                    measure(binary, "one key, one connection", servers, seconds, "--keys", "1", "--connections", "1")
                measure(binary, "one key, 50 connections each", servers, seconds, "--keys", "1")
                measure(binary, "one key, 50 connections each, 32 at once", servers, seconds, "--keys", "1", "--pipeline", "32")
                measure(binary, "1,000 keys, 50 connections each", servers, seconds, "--keys", "1000")
                if sharing == "exact":
                    words = ("--http", "--domain", "edge", "--keys", "1")
                    measure(binary, "denials of one key, one connection", servers, seconds, *words, "--connections", "1")
                    measure(binary, "denials of one key, 50 connections each", servers, seconds, *words)
                    if not options.dynamodb:
                        measure_locks(binary, servers, seconds)
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
