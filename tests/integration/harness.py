"""Real processes for the integration tests: Headgate and Redis on free ports, their files in temporary folders.

Every test file runs alone: HEADGATE_BINARY=build/dev/bin/headgate python3 -m unittest tests/integration/test_http.py
"""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ.get("HEADGATE_BINARY", "build/dev/bin/headgate")
INTEGRATION = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, seconds, what):
    """Polls until `condition()` is true; returns its value. Fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        select.select([], [], [], 0.01)


class Headgate:
    """A running server. `args` go behind `headgate serve`."""

    def __init__(self, *args, env=None):
        self.args = [BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", *args]
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            self.args, stdout=subprocess.PIPE, stderr=self.log, text=True, env={**os.environ, **(env or {})}
        )
        self.port = None
        self._wait_until_listening()

    def _wait_until_listening(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
            line = self.process.stdout.readline() if ready else ""
            match = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
            if match:
                self.port = int(match.group(1))
                return
            if self.process.poll() is not None:
                break
        raise AssertionError(f"headgate did not start: {' '.join(self.args)}\n{self.errors()}")

    def errors(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self, signal_number=signal.SIGTERM):
        """Sends the signal and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        code = self.process.wait(timeout=START_SECONDS)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    # ---- HTTP

    def request(self, method, path, body=None, headers=None):
        """(status, fields with lower-case names, text of the body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        fields = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body=body, headers={**fields, **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, text

    def check(self, domain="default", cost=None, path="/v1/check", headers=None, **entries):
        """(status, fields, JSON) of one descriptor."""
        descriptor = {"entries": [{"key": key, "value": value} for key, value in entries.items()]}
        if cost is not None:
            descriptor["cost"] = cost
        body = json.dumps({"domain": domain, "descriptors": [descriptor]})
        status, fields, text = self.request("POST", path, body, headers)
        return status, fields, json.loads(text)

    # ---- the Redis protocol, byte by byte

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


class RedisServer:
    """A real Redis without persistence."""

    def __init__(self, *args):
        self.args = args
        self.port = free_port()
        self.folder = tempfile.mkdtemp()
        self.start()

    def start(self):
        """Also after it was killed: at the same port, and empty."""
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.folder, *self.args],
            stdout=subprocess.DEVNULL,
        )
        until(self._answers, START_SECONDS, "redis-server answers")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(*command, **kwargs):
    """A finished process with its output as text."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **kwargs)


def require(*programs):
    """The test needs these: in continuous integration a missing one is a failure, at home the test is skipped aloud."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing and os.environ.get("CI"):
        raise AssertionError(f"missing: {', '.join(missing)}; hint: ./dev setup test")
    if missing:
        raise unittest.SkipTest(f"missing: {', '.join(missing)}; hint: ./dev setup test")
