#!/usr/bin/env python3
"""Compares `headgate sidecar` with nginx that proxies the same upstream and limits with limit_req, in
one run: server CPU of a request (1 KiB, kept connections, fair share on), the latency that each adds
at half of the load, the rate and CPU of a large body, memory of idle connections, and answers at
twice the capacity.

    /usr/bin/python3 tests/bench/sidecar_against_nginx.py [--seconds N] [--rounds N] [--only PART]

PART is cpu, latency, stream, idle or overload. Needs wrk, h2load, nginx and curl. The upstream is an
nginx of its own. Everything shares the cores of this machine."""

import argparse
import os
import re
import resource
import socket
import statistics
import subprocess
import tempfile
import time

from http_against_nginx import children, wait_for
from processes import cpu_seconds, free_port

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
HEADGATE = os.environ.get("HEADGATE_BINARY", os.path.join(ROOT, "build/release/bin/headgate"))
STREAM_BYTES = 1 << 30
IDLE_CONNECTIONS = 10_000

COMMON = """
daemon off; worker_processes 1; pid NAME.pid; error_log stderr crit; worker_rlimit_nofile 30000;
events { worker_connections 25000; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s; sendfile on; tcp_nopush on;
  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
  client_max_body_size 0;
"""
UPSTREAM = (
    COMMON
    + """
  server { listen 127.0.0.1:PORT backlog=4096; root FOLDER/files; }
}
"""
)
# The fairest that nginx can be compared: kept connections to the upstream, nothing buffered on disk.
PROXY = (
    COMMON
    + """
  limit_req_zone $http_x_client_id zone=clients:8m rate=1000000r/s;
  upstream back { server 127.0.0.1:UPSTREAM; keepalive 64; }
  server {
    listen 127.0.0.1:PORT backlog=4096;
    location / {
      limit_req zone=clients burst=1000 nodelay;
      proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_max_temp_file_size 0;
    }
  }
}
"""
)
LUA = """
local n = 0
request = function()
  n = (n + 1) % 64
  return "GET /small HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nX-Client-Id: client" .. n .. "\\r\\n\\r\\n"
end
"""


class Servers:
    def __init__(self, folder):
        self.folder = folder
        self.ports = {name: free_port() for name in ("upstream", "nginx", "headgate")}
        os.chmod(folder, 0o755)
        os.mkdir(f"{folder}/files")
        with open(f"{folder}/files/small", "wb") as file:
            file.write(os.urandom(512).hex().encode())
        with open(f"{folder}/files/large", "wb") as file:
            file.truncate(STREAM_BYTES)
        self._write("get.lua", LUA)
        self.processes = [self._nginx("upstream", UPSTREAM), self._nginx("nginx", PROXY), self._headgate(10_000_000)]
        for port in self.ports.values():
            wait_for(port)
        self.pids = {"nginx": children(self.processes[1].pid)[0], "headgate": self.processes[2].pid}

    def _write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def _nginx(self, name, text):
        for word, value in (("NAME", name), ("UPSTREAM", self.ports["upstream"]), ("PORT", self.ports[name]), ("FOLDER", self.folder)):
            text = text.replace(word, str(value))
        self._write(f"{name}.conf", text)
        environment = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}
        return subprocess.Popen(["nginx", "-p", self.folder, "-c", f"{name}.conf"], env=environment)

    def _headgate(self, capacity, port=None):
        words = [HEADGATE, "sidecar", "--listen", f"127.0.0.1:{port or self.ports['headgate']}"]
        words += ["--upstream", f"http://127.0.0.1:{self.ports['upstream']}", "--capacity", str(capacity), "--cycle", "1s"]
        words += ["--threads", "1", "--admin-listen", "none", "--log-level", "error", "--max-connections", "12000"]
        words += ["--max-connections-per-address", "12000"]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def limited(self, capacity):
        """Another sidecar, with this capacity for each second."""
        port = free_port()
        self.processes.append(self._headgate(capacity, port))
        wait_for(port)
        return port

    def close(self):
        for process in self.processes[2:]:
            process.kill()
        for process in self.processes[:2]:
            process.terminate()
            process.wait()


def wrk(servers, port, seconds):
    words = ["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", f"{servers.folder}/get.lua", f"http://127.0.0.1:{port}/"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout:
        raise SystemExit(done.stdout)
    return int(re.search(r"(\d+) requests in", done.stdout).group(1))


def compare(title, unit, figures):
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, values in figures.items():
        ratio = medians[name] / medians["nginx"]
        print(f"{title:26} {name:9} {medians[name]:9.2f} {unit:6} {ratio:6.2f} x   ({min(values):.2f} to {max(values):.2f})", flush=True)


def measure_cpu(servers, options):
    figures = {"nginx": [], "headgate": []}
    rates = {"nginx": [], "headgate": []}
    for round_number in range(options.rounds + 1):
        for name in figures:
            before = cpu_seconds(servers.pids[name])
            requests = wrk(servers, servers.ports[name], options.seconds)
            if round_number == 0:
                continue
            figures[name].append((cpu_seconds(servers.pids[name]) - before) / requests * 1e6)
            rates[name].append(requests / options.seconds)
    compare("CPU of a request", "us", figures)
    compare("requests per second", "/s", rates)
    return min(statistics.median(values) for values in rates.values())


def timed(servers, port, rate, seconds, headers=()):
    """(status, microseconds) of each request; 32 clients send at this rate in all."""
    log = f"{servers.folder}/h2load.log"
    if os.path.exists(log):
        os.remove(log)
    words = ["h2load", "--h1", "-t1", "-c32", "-D", str(seconds), f"--rps={rate / 32:.3f}", f"--log-file={log}"]
    for header in headers or ("X-Client-Id: client1",):
        words += ["-H", header]
    subprocess.run([*words, f"http://127.0.0.1:{port}/small"], capture_output=True, check=True)
    with open(log, encoding="ascii") as file:
        return [(int(line.split("\t")[1]), int(line.split("\t")[2])) for line in file]


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def measure_latency(servers, options, rate):
    """The medians of the 99th percentiles; the order changes from round to round."""
    names = ("upstream", "nginx", "headgate")
    figures = {name: [] for name in names}
    for number in range(options.rounds):
        for name in names[number % 3 :] + names[: number % 3]:
            figures[name].append(p99([us for _, us in timed(servers, servers.ports[name], rate, options.seconds)]))
    direct = statistics.median(figures.pop("upstream"))
    compare(f"p99 at {rate:,.0f}/s", "us", figures)
    added = {name: statistics.median(values) - direct for name, values in figures.items()}
    print(f"p99 without a proxy {direct:.0f} us; added: nginx {added['nginx']:.0f} us, headgate {added['headgate']:.0f} us", flush=True)


def measure_stream(servers, options):
    rates, costs = {"nginx": [], "headgate": []}, {"nginx": [], "headgate": []}
    for _ in range(options.rounds):
        for name in rates:
            before, began = cpu_seconds(servers.pids[name]), time.monotonic()
            url = f"http://127.0.0.1:{servers.ports[name]}/large"
            done = subprocess.run(
                ["curl", "-s", "-o", "/dev/null", "-w", "%{size_download}", "-H", "X-Client-Id: a", url],
                capture_output=True, text=True, check=True,
            )
            if int(done.stdout) != STREAM_BYTES:
                raise SystemExit(f"{name}: {done.stdout} bytes")
            rates[name].append(STREAM_BYTES / (time.monotonic() - began) / 1e6)
            costs[name].append(cpu_seconds(servers.pids[name]) - before)
    compare("1 GiB", "MB/s", rates)
    compare("CPU of 1 GiB", "s", costs)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def measure_idle(servers, _options):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    figures = {}
    for name in ("nginx", "headgate"):
        before = resident_kib(servers.pids[name])
        connections = []
        for _ in range(IDLE_CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", servers.ports[name]), timeout=10)
            connection.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\nX-Client-Id: a\r\n\r\n")
            connections.append(connection)
            while len(connection.recv(65536)) == 0:
                raise SystemExit(f"{name} closed a connection")
        figures[name] = [(resident_kib(servers.pids[name]) - before) / 1024]
        print(f"{name}: {resident_kib(servers.pids[name]) / 1024:.0f} MiB resident in all")
        for connection in connections:
            connection.close()
    compare("10,000 idle connections", "MiB", figures)


def measure_overload(servers, options, rate):
    """A capacity of a quarter of the machine's throughput, and twice that much load."""
    capacity = int(rate / 4)
    port = servers.limited(capacity)
    answers = timed(servers, port, capacity * 2, max(4, options.seconds))
    passed = [us for status, us in answers if status == 200]
    refused = [us for status, us in answers if status == 429]
    share = len(passed) / max(4, options.seconds) / capacity
    print(f"twice the capacity of {capacity:,}/s: {share * 100:.0f} % of it passed, {len(refused):,} refused,"
          f" p99 of refusals {p99(refused) / 1000:.1f} ms, of the others {p99(passed) / 1000:.1f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("cpu", "latency", "stream", "idle", "overload"))
    parser.add_argument("--peak", type=int, default=8_000, help="requests per second, if --only leaves out their measurement")
    options = parser.parse_args()
    wanted = lambda part: options.only in (None, part)
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(folder)
        try:
            rate = options.peak
            if wanted("cpu"):
                rate = measure_cpu(servers, options)
            if wanted("latency"):
                measure_latency(servers, options, rate / 2)
            if wanted("stream"):
                measure_stream(servers, options)
            if wanted("idle"):
                measure_idle(servers, options)
            if wanted("overload"):
                measure_overload(servers, options, rate)
        finally:
            servers.close()


if __name__ == "__main__":
    main()
