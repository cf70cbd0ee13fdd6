#!/usr/bin/env python3
"""Compares the server CPU of one request: Headgate's /auth and /v1/check, and nginx that limits by
itself (limit_req over as many keys). All in one run, in turn, with the same load generator.

    python3 tests/bench/http_against_nginx.py [--seconds N] [--rounds N]

Needs wrk and nginx. Prints the median CPU time of a request for each server, and its ratio to
nginx."""

import argparse
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time

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


def measure(port, pid, script, seconds):
    """CPU microseconds of the server for one request."""
    before = cpu_seconds(pid)
    done = subprocess.run(
        ["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", script, f"http://127.0.0.1:{port}/"],
        capture_output=True,
        text=True,
        check=True,
    )
    used = cpu_seconds(pid) - before
    requests = int(re.search(r"(\d+) requests in", done.stdout).group(1))
    if "Non-2xx" in done.stdout:
        raise SystemExit(done.stdout)
    return used / requests * 1e6


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=int, default=3)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    nginx_port, headgate_port = free_port(), free_port()
    files = {"nginx.conf": NGINX.replace("PORT", str(nginx_port)), "get.lua": GET, "post.lua": POST}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text.replace("KEYS", str(KEYS)))
    nginx = subprocess.Popen(["nginx", "-p", folder, "-c", "nginx.conf"], env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
    headgate = subprocess.Popen(
        [
            *(HEADGATE, "serve", "--listen", f"127.0.0.1:{headgate_port}", "--admin-listen", "none", "--threads", "1"),
            *("--auth-header", "X-API-Key", "--rule", "api_key: 1000/s burst 1000", "--log-level", "error"),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(nginx_port)
        wait_for(headgate_port)
        worker = children(nginx.pid)[0]
        get, post = os.path.join(folder, "get.lua"), os.path.join(folder, "post.lua")
        servers = {
            "nginx, limit_req": (nginx_port, worker, get),
            "headgate, /auth": (headgate_port, headgate.pid, get),
            "headgate, /v1/check": (headgate_port, headgate.pid, post),
        }
        for port, pid, script in servers.values():
            measure(port, pid, script, 1)
        figures = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, server in servers.items():
                figures[name].append(measure(*server, options.seconds))
        base = statistics.median(figures["nginx, limit_req"])
        for name, values in figures.items():
            middle = statistics.median(values)
            print(f"{name:22} {middle:6.2f} us   {middle / base:5.2f} x   ({min(values):.2f} to {max(values):.2f})")
    finally:
        headgate.kill()
        nginx.terminate()
        nginx.wait()


if __name__ == "__main__":
    main()
