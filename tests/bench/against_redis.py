#!/usr/bin/env python3
"""Compares Headgate with the same limit as a Lua script in Redis, and with Redis' INCR, which decides
nothing: commands per second of server CPU, in one run.

Each server uses one core. redis-benchmark loads them in turn for several rounds. The figure is the
CPU time (user and system) that the server's process used, so other work on the machine disturbs
little. The ratio compares the medians.

    tests/bench/against_redis.py --headgate build/release/bin/headgate
"""

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from processes import cpu_seconds, free_port

# GCRA as rate-limiting libraries write it for Redis: one key, the server's clock, five numbers in
# the reply.
GCRA = """
redis.replicate_commands()
local burst, count, period, cost = tonumber(ARGV[1]) + 1, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local interval = period / count
local time = redis.call('TIME')
local now = (time[1] - 1483228800) + (time[2] / 1000000)
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
tat = math.max(tat, now)
local new_tat = tat + interval * cost
local diff = now - (new_tat - interval * burst)
if diff < 0 then
  return {1, burst, math.floor((now - (tat - interval * burst)) / interval), math.ceil(-diff), math.ceil(tat - now)}
end
redis.call('SET', KEYS[1], new_tat, 'EX', math.ceil(new_tat - now))
return {0, burst, math.floor(diff / interval), -1, math.ceil(new_tat - now)}
"""

BURST, COUNT, PERIOD = "1000000", "1000000", "60"


def wait_until_answering(port):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"nothing answers on port {port}")


def benchmark(port, requests, pipeline, keys, command):
    subprocess.run(
        ["redis-benchmark", "-p", str(port), "-n", str(requests), "-P", str(pipeline), "-c", "50", "-r", str(keys), *command],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headgate", required=True, help="the binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=10_000)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        redis_port, headgate_port = free_port(), free_port()
        redis = subprocess.Popen(
            ["redis-server", "--port", str(redis_port), "--save", "", "--appendonly", "no", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        headgate = subprocess.Popen(
            [options.headgate, "serve", "--listen", f"127.0.0.1:{headgate_port}", "--admin-listen", "none", "--threads", "1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            wait_until_answering(redis_port)
            wait_until_answering(headgate_port)
            sha = subprocess.run(
                ["redis-cli", "-p", str(redis_port), "SCRIPT", "LOAD", GCRA], check=True, capture_output=True, text=True
            ).stdout.strip()
            key = "user:__rand_int__"
            sides = {
                "Redis, INCR": (redis, redis_port, ["INCR", "counter:__rand_int__"]),
                "Redis, GCRA in Lua": (redis, redis_port, ["EVALSHA", sha, "1", key, BURST, COUNT, PERIOD, "1"]),
                "Headgate, CL.THROTTLE": (headgate, headgate_port, ["CL.THROTTLE", key, BURST, COUNT, PERIOD]),
            }
            for pipeline, requests in ((32, 1_000_000), (1, 200_000)):
                rates = {name: [] for name in sides}
                for round_number in range(options.rounds + 1):
                    for name, (process, port, command) in sides.items():
                        before = cpu_seconds(process.pid)
                        benchmark(port, requests, pipeline, options.keys, command)
                        spent = cpu_seconds(process.pid) - before
                        if round_number > 0:  # the first one warms up
                            rates[name].append(requests / spent)
                print(f"pipeline {pipeline}, {options.keys} keys, {options.rounds} rounds:")
                medians = {}
                for name, values in rates.items():
                    medians[name] = statistics.median(values)
                    print(
                        f"  {name:24} {medians[name]:12,.0f} commands per CPU second"
                        f"  (min {min(values):,.0f}, max {max(values):,.0f})  {1e6 / medians[name]:.2f} µs each"
                    )
                incr, lua, headgate_rate = medians.values()
                print(f"  rate, compared with the script {headgate_rate / lua:.1f}; CPU, compared with INCR {incr / headgate_rate:.2f}")
        finally:
            for process in (redis, headgate):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
