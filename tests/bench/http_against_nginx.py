#!/usr/bin/env python3
"""Compares the server CPU of one request: Headgate's /auth, /v1/check and SPOE, and nginx that limits
by itself (limit_req over as many keys). Also compares what TLS adds to both. All in one run, in
turn; HTTP with the same load generator.

    python3 tests/bench/http_against_nginx.py [--seconds N] [--rounds N]

Needs wrk, nginx and openssl. Prints the median CPU time of a request for each server, and its ratio
to nginx."""

import argparse
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time

import spoe_load
from processes import cpu_seconds, free_port

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
HEADGATE = os.environ.get("HEADGATE_BINARY", os.path.join(ROOT, "build/release/bin/headgate"))
KEYS = 100_000

# nginx answers by itself: `return` would answer before limit_req, so the empty image answers.
NGINX = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000000;
  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
  limit_req_zone $http_x_api_key zone=keys:32m rate=1000r/s;
  server {
    listen 127.0.0.1:PORT;
    listen 127.0.0.1:TLS_PORT ssl;
    ssl_certificate certificate.pem; ssl_certificate_key key.pem;
    location / { limit_req zone=keys burst=1000 nodelay; empty_gif; }
  }
}
"""

GET = """
local n = 0
request = function()
  n = (n * 1103515245 + 12345) % 2147483648
  return "GET /auth HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nX-API-Key: key" .. n % KEYS .. "\\r\\n\\r\\n"
end
"""
POST = """
local n = 0
request = function()
  n = (n * 1103515245 + 12345) % 2147483648
  local body = '{"descriptors":[{"entries":[{"key":"api_key","value":"key' .. n % KEYS .. '"}]}]}'
  return "POST /v1/check HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: application/json\\r\\nContent-Length: " .. #body .. "\\r\\n\\r\\n" .. body
end
"""


def children(pid):
    done = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on {port}")


def http(script, scheme="http"):
    """A load: sends the script's requests for some seconds, and returns their number."""

    def load(port, seconds):
        done = subprocess.run(
            ["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", script, f"{scheme}://127.0.0.1:{port}/"],
            capture_output=True,
            text=True,
            check=True,
        )
        if "Non-2xx" in done.stdout:
            raise SystemExit(done.stdout)
        return int(re.search(r"(\d+) requests in", done.stdout).group(1))

    return load


def spoe(port, seconds):
    return spoe_load.run(port, seconds, KEYS)


def measure(port, pid, load, seconds):
    """CPU microseconds of the server for one request."""
    before = cpu_seconds(pid)
    requests = load(port, seconds)
    return (cpu_seconds(pid) - before) / requests * 1e6


def write_files(folder, ports):
    os.chmod(folder, 0o755)
    conf = NGINX.replace("TLS_PORT", str(ports["nginx tls"])).replace("PORT", str(ports["nginx"]))
    for name, text in {"nginx.conf": conf, "get.lua": GET, "post.lua": POST}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text.replace("KEYS", str(KEYS)))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
        + ["-subj", "/CN=localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"],
        check=True,
        capture_output=True,
    )


def start(folder, ports):
    nginx = subprocess.Popen(
        ["nginx", "-p", folder, "-c", "nginx.conf"], env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}
    )
    headgate = subprocess.Popen(
        [
            *(HEADGATE, "serve", "--listen", f"127.0.0.1:{ports['headgate']}", "--listen", f"tls:127.0.0.1:{ports['headgate tls']}"),
            *("--tls-certificate-file", f"{folder}/certificate.pem", "--tls-key-file", f"{folder}/key.pem"),
            *("--listen-spoe", f"127.0.0.1:{ports['spoe']}", "--admin-listen", "none", "--threads", "1"),
            *("--auth-header", "X-API-Key", "--rule", "api_key: 1000/s burst 1000", "--log-level", "error"),
        ],
        stdout=subprocess.DEVNULL,
    )
    for port in ports.values():
        wait_for(port)
    return nginx, headgate


def report(figures):
    medians = {name: statistics.median(values) for name, values in figures.items()}
    base = medians["nginx, limit_req"]
    for name, values in figures.items():
        print(f"{name:24} {medians[name]:6.2f} us   {medians[name] / base:5.2f} x   ({min(values):.2f} to {max(values):.2f})")
    added = {who: medians[f"{who}, TLS"] - medians[who] for who in ("nginx, limit_req", "headgate, /auth")}
    ratio = added["headgate, /auth"] / added["nginx, limit_req"]
    print(f"TLS adds {added['nginx, limit_req']:.2f} us to nginx, {added['headgate, /auth']:.2f} us to /auth: {ratio:.2f} x")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=int, default=3)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    ports = {name: free_port() for name in ("nginx", "nginx tls", "headgate", "headgate tls", "spoe")}
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder, ports)
        nginx, headgate = start(folder, ports)
        try:
            worker = children(nginx.pid)[0]
            get, post = os.path.join(folder, "get.lua"), os.path.join(folder, "post.lua")
            servers = {
                "nginx, limit_req": (ports["nginx"], worker, http(get)),
                "headgate, /auth": (ports["headgate"], headgate.pid, http(get)),
                "headgate, /v1/check": (ports["headgate"], headgate.pid, http(post)),
                "headgate, SPOE": (ports["spoe"], headgate.pid, spoe),
                "nginx, limit_req, TLS": (ports["nginx tls"], worker, http(get, "https")),
                "headgate, /auth, TLS": (ports["headgate tls"], headgate.pid, http(get, "https")),
            }
            for server in servers.values():
                measure(*server, 1)
            figures = {name: [] for name in servers}
            for _ in range(options.rounds):
                for name, server in servers.items():
                    figures[name].append(measure(*server, options.seconds))
            report(figures)
        finally:
            headgate.kill()
            nginx.terminate()
            nginx.wait()


if __name__ == "__main__":
    main()
