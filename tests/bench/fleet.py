#!/usr/bin/env python3
"""Measures what sharing a limit costs: CPU per decision of an instance and of its Redis, exact and
from leases, in one run.

Instances and load have one core each. The figure is the CPU time (user and system) that a process
used, so other work on the machine disturbs little. Each figure is the median of several rounds that
take turns.

    tests/bench/fleet.py --headgate build/release/bin/headgate
"""

import argparse
import json
import os
import re
import select
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from against_redis import cpu_seconds, free_port, wait_until_answering

# The instances have one core, on which one instance is busy at a time. The load and the store have
# the other.
CPUS = sorted(os.sched_getaffinity(0))
INSTANCE_CPUS, OTHER_CPUS = {CPUS[-1]}, {CPUS[0]}

PLENTY = ("1000000000", "1000000000", "60")


class Instance:
    def __init__(self, binary, *args, threads=1):
        self.port = free_port()
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--admin-listen", "none", "--threads", str(threads),
             "--store-timeout", "1s", "--store-connect-timeout", "1s", *args],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, INSTANCE_CPUS),
        )
        wait_until_answering(self.port)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def metric(self, name):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(match.group(1)) if match else 0.0

    def store_calls(self):
        return sum(self.metric(f'headgate_store_calls_total{{outcome="{o}"}}') for o in ("answered", "timed_out", "unavailable"))


def bytes_of(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def drive(port, batches, connections, replies_in):
    """Sends the batches over this many connections; each waits for its replies."""

    def run(share):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for batch, count in share:
                connection.sendall(batch)
                seen = 0
                while seen < count:
                    data = connection.recv(1 << 18)
                    if not data:
                        return
                    seen += replies_in(data)

    threads = [threading.Thread(target=run, args=(batches[i::connections],)) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def load(binary, port, **options):
    """Runs throttle_load and returns its output."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    tool = os.path.join(os.path.dirname(binary), "throttle_load")
    run = subprocess.run([tool, "--port", str(port), *words], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def script_call(redis_port, instance_port):
    """The words that an instance sends to Redis for one decision, as MONITOR shows them."""
    with socket.create_connection(("127.0.0.1", redis_port), timeout=10) as monitor:
        monitor.sendall(b"MONITOR\r\n")
        monitor.recv(100)
        with socket.create_connection(("127.0.0.1", instance_port)) as client:
            client.sendall(bytes_of("CL.THROTTLE", "sampled", *PLENTY))
            client.recv(100)
        text = b""
        while b"hg:{t|sampled}" not in text or not text.endswith(b"\r\n"):
            text += monitor.recv(65536)
    line = next(l for l in text.split(b"\r\n") if b"hg:{t|sampled}" in l and b'"EVAL' in l.upper())
    words = re.findall(rb'"((?:[^"\\]|\\.)*)"', line)
    words = [w.decode("unicode_escape").encode("latin-1") for w in words]
    return words


def report(name, values, wanted=""):
    print(f"  {name:66} {statistics.median(values):8.2f}  (min {min(values):.2f}, max {max(values):.2f})  {wanted}")


def exact(binary, redis, redis_port, rounds, requests):
    print("exact: every decision asks the store; 64 connections, one command each, 10,000 keys; µs of CPU per decision")
    store = ("--store", f"redis://127.0.0.1:{redis_port}", "--sharing", "exact")
    with_store, alone = Instance(binary, *store), Instance(binary)
    words = script_call(redis_port, with_store.port)
    name = words.index(b"hg:{t|sampled}")
    sha = words[1] if words[0].upper() == b"EVALSHA" else subprocess.run(
        ["redis-cli", "-p", str(redis_port), "SCRIPT", "LOAD", words[1].decode()], check=True, capture_output=True).stdout.strip()
    words[0], words[1] = b"EVALSHA", sha
    batches = []
    for i in range(requests // 32):
        batch = b""
        for k in range(32):
            words[name] = b"hg:{t|user:%012d}" % ((i * 32 + k) * 7919 % 10_000)
            batch += bytes_of(*words)
        batches.append((batch, 32))
    direct, shared, instance, memory = [], [], [], []
    for round_number in range(rounds + 1):
        before = cpu_seconds(redis.pid)
        drive(redis_port, batches, 8, lambda data, n=reply_bytes(redis_port, batches[0][0]): len(data) / n)
        one = (cpu_seconds(redis.pid) - before) / requests * 1e6
        before, before_instance = cpu_seconds(redis.pid), cpu_seconds(with_store.process.pid)
        benchmark_64(with_store.port, requests)
        two = (cpu_seconds(redis.pid) - before) / requests * 1e6
        three = (cpu_seconds(with_store.process.pid) - before_instance) / requests * 1e6
        before = cpu_seconds(alone.process.pid)
        benchmark_64(alone.port, requests)
        four = (cpu_seconds(alone.process.pid) - before) / requests * 1e6
        if round_number > 0:
            for values, value in ((direct, one), (shared, two), (instance, three), (memory, four)):
                values.append(value)
    report("Redis, the same script pipelined 32 deep", direct)
    report("Redis, behind one instance", shared)
    report("  ratio", [s / d for s, d in zip(shared, direct)], "wanted: 1.15 or less")
    report("the instance", instance)
    report("an instance with the memory store", memory)
    report("  more", [i - m for i, m in zip(instance, memory)], "wanted: 2.5 or less")
    calls = with_store.metric("headgate_store_batch_calls_sum") / max(1, with_store.metric("headgate_store_batch_calls_count"))
    print(f"  calls per write to the store: {calls:.1f}")
    for server in (with_store, alone):
        server.stop()


def reply_bytes(port, batch):
    """The length of one reply of the script."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(batch)
        data = b""
        while True:
            ready, _, _ = select.select([connection], [], [], 0.3)
            if not ready:
                return len(data) / 32
            data += connection.recv(1 << 18)


def benchmark_64(port, requests):
    subprocess.run(
        ["redis-benchmark", "-p", str(port), "-n", str(requests), "-P", "1", "-c", "64", "-r", "10000",
         "CL.THROTTLE", "user:__rand_int__", *PLENTY],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )


ZIPF = {"zipf": 1.1, "keys": 100_000, "connections": 64}


def leased(binary, redis_port, rounds):
    print("leased: Zipf 1.1 over 100,000 keys, 64 connections each, limits not reached; both instances at the same time on one core,")
    print("so that a machine whose speed changes does not change what is compared; µs of CPU per decision of the instance")
    with_store, alone = Instance(binary, "--store", f"redis://127.0.0.1:{redis_port}"), Instance(binary)
    for depth in (1, 32):
        shared, memory, asked, pace = [], [], [], []
        # The first round warms up; the measured rounds follow at once.
        for round_number in range(2 * rounds + 1):
            before = {s: cpu_seconds(s.process.pid) for s in (with_store, alone)}
            calls_before = with_store.store_calls()
            done = {}

            def drive_one(server):
                done[server] = load(binary, server.port, depth=depth, seconds=4, warm_up=0, seed=3 + round_number, **ZIPF)

            threads = [threading.Thread(target=drive_one, args=(server,)) for server in (with_store, alone)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if round_number == 0:
                continue
            for server, values in ((with_store, shared), (alone, memory)):
                values.append((cpu_seconds(server.process.pid) - before[server]) / done[server]["decisions"] * 1e6)
            asked.append(100 * (with_store.store_calls() - calls_before) / done[with_store]["decisions"])
            pace.append(done[with_store]["per_second"])
        report(f"{depth} deep, with leases", shared)
        report(f"{depth} deep, memory", memory)
        report("  ratio", [s / m for s, m in zip(shared, memory)], "wanted: 1.2 or less" if depth == 1 else "")
        report("  store calls, % of decisions", asked)
        report("  decisions a second with leases", pace)
    for server in (with_store, alone):
        server.stop()


def latency(binary, redis, redis_port, rounds):
    print("latency of a decision: 64 connections, at half of the load that saturates; 99th percentile, µs")
    store = f"redis://127.0.0.1:{redis_port}"
    exact_one, leased_one, alone = Instance(binary, "--store", store, "--sharing", "exact"), Instance(binary, "--store", store), Instance(binary)
    even, hot = {"keys": 10_000}, {"keys": 100}
    pace = load(binary, exact_one.port, seconds=3, **even)["per_second"] / 2
    took = [load(binary, exact_one.port, seconds=4, rate=pace, **even)["p99_us"] for _ in range(rounds)]
    report(f"exact, {pace:.0f} decisions a second", took, "wanted: 3000 or less")

    # All variants run at the same pace, in short rounds that take turns. The quietest and the most
    # disturbed fifth of the rounds are left out. Redis has to share the core of the load: it runs
    # when the load is idle, as if it ran on another machine.
    os.sched_setscheduler(redis.pid, os.SCHED_IDLE, os.sched_param(0))
    pace = min(load(binary, server.port, seconds=3, **hot)["per_second"] for server in (leased_one, alone)) / 2
    took = {leased_one: [], alone: []}
    for _ in range(10 * rounds):
        for server, values in took.items():
            values.append(load(binary, server.port, seconds=1, warm_up=0.2, rate=pace, **hot)["p99_us"])
    os.sched_setscheduler(redis.pid, os.SCHED_OTHER, os.sched_param(0))
    typical = {server: statistics.mean(sorted(values)[2 * rounds : -2 * rounds]) for server, values in took.items()}
    print(f"  leased, 100 hot keys, {pace:.0f} decisions a second: {typical[leased_one]:.0f}; memory, the same: {typical[alone]:.0f}; "
          f"ratio {typical[leased_one] / typical[alone]:.2f}  wanted: 1.2 or less")
    for server in (exact_one, leased_one, alone):
        server.stop()


def hot_keys(binary, redis_port):
    print("hot keys, limit not reached")
    instance = Instance(binary, "--store", f"redis://127.0.0.1:{redis_port}")
    for keys, wanted in ((1, 0.5), (100, 1)):
        before = instance.store_calls()
        answered = load(binary, instance.port, keys=keys, prefix=f"hot{keys}-", connections=16, depth=32, seconds=4)["decisions"]
        print(f"  {keys}: {100 * (instance.store_calls() - before) / answered:.4f} % of {answered} decisions called the store"
              f"  wanted: {wanted} or less")
    instance.stop()


def abused(binary, redis_port):
    print("one key of 100 a second, asked for as fast as possible")
    for threads in (1, 4, 16):
        instance = Instance(binary, "--store", f"redis://127.0.0.1:{redis_port}", threads=threads)
        abuse = {"keys": 1, "prefix": f"abused{threads}-", "limit": "100 100 1", "connections": 4 * threads, "depth": 32, "warm_up": 0}
        load(binary, instance.port, seconds=2, **abuse)
        # Leaves out the instance's heartbeats.
        asked = lambda: instance.metric("headgate_lease_asks_total") + instance.metric('headgate_shared_decisions_total{mode="exact"}')
        before = asked()
        done = load(binary, instance.port, seconds=4, **abuse)
        print(f"  {threads} event loops, at {done['per_second'] / 100:.0f} times its limit: "
              f"{(asked() - before) / done['seconds']:.1f} store calls a second  wanted: 20 or less")
        instance.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headgate", required=True, help="the binary")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=192_000)
    options = parser.parse_args()
    os.sched_setaffinity(0, OTHER_CPUS)
    with tempfile.TemporaryDirectory() as folder:
        redis_port = free_port()
        redis = subprocess.Popen(
            ["redis-server", "--port", str(redis_port), "--save", "", "--appendonly", "no", "--dir", folder], stdout=subprocess.DEVNULL
        )
        try:
            wait_until_answering(redis_port)
            exact(options.headgate, redis, redis_port, 3 * options.rounds, options.requests)
            leased(options.headgate, redis_port, options.rounds)
            latency(options.headgate, redis, redis_port, options.rounds)
            hot_keys(options.headgate, redis_port)
            abused(options.headgate, redis_port)
        finally:
            redis.kill()
            redis.wait()


if __name__ == "__main__":
    main()
