"""Starts real processes for the integration tests: Headgate and Redis on free ports, with their
files in temporary folders.

Each test file can run alone: HEADGATE_BINARY=build/dev/bin/headgate python3 -m unittest
tests/integration/test_http.py
"""

import binascii
import fcntl
import http.client
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from contextlib import ExitStack

from resp import Replies, as_text, encode

BINARY = os.environ.get("HEADGATE_BINARY", "build/dev/bin/headgate")
# Another server that speaks the protocol can be selected, such as Valkey.
REDIS_SERVER = os.environ.get("HEADGATE_REDIS_SERVER") or "redis-server"
INTEGRATION = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 20


def replace_file(path, text):
    """Renames a new file into place, so that nobody reads half of it. Returns the path."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)
    return path


def free_port():
    """A port below the range that the system gives to connections, so that no connection takes it
    before the server does."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.randrange(10_000, 32_768)))
            except OSError:
                continue
            return probe.getsockname()[1]


def until(condition, seconds, what):
    """Polls until `condition()` is true, and returns its value. Fails with `what` after
    `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        select.select([], [], [], 0.02)


def wait(seconds):
    """Lets time pass while load runs. Do not use it to wait for an event."""
    select.select([], [], [], seconds)


def resident_bytes(server):
    """The memory of the server's process that is in RAM."""
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def allow_files():
    """Allows this process as many descriptors as the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


# For servers with a shared store, in tests that are not about timeouts: a busy machine must not look
# like a store that is away.
PATIENT = ("--store-timeout", "2s", "--store-connect-timeout", "2s")


def log_file():
    """A file for the output of a process; `text_of` reads it. The process appends, because everybody
    who has the file open shares its position."""
    file = tempfile.TemporaryFile()
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
    return file


def text_of(file):
    """The text that a process has written to `file`. Reads without the shared position: a line that is written
    between a seek and a read would move it to the end, and nothing would be read."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


class Headgate:
    """A running server. `args` follow `headgate serve`, and `prefix` comes before the command.
    `admin` is the admin address; its port is then `admin_port`."""

    COMMAND = "serve"

    def __init__(self, *args, env=None, prefix=(), admin="none"):
        admin_words = () if "--admin-listen" in args else ("--admin-listen", admin)
        self.args = [*prefix, BINARY, self.COMMAND, "--listen", "127.0.0.1:0", *admin_words, *args]
        self.log = log_file()
        self._said = ""
        self.process = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=self.log, env={**os.environ, **(env or {})})
        self.port = self.wait_for(r"listening on 127\.0\.0\.1:(\d+)\n")
        self.admin_port = None if admin == "none" else self.wait_for(r"admin on 127\.0\.0\.1:(\d+)\n")

    def wait_for(self, pattern):
        """The next port on stdout that matches `pattern`."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            match = re.search(pattern, self._said)
            if match:
                self._said = self._said[match.end() :]
                return int(match.group(1))
            ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
            self._said += os.read(self.process.stdout.fileno(), 4096).decode() if ready else ""
            if self.process.poll() is not None:
                break
        raise AssertionError(f"headgate did not start: {' '.join(self.args)}\n{self.errors()}")

    def errors(self):
        return text_of(self.log)

    def metric(self, name):
        """The value of one series, such as `headgate_x_total{label="value"}`; 0 if it does not
        exist. Reads the admin address if there is one."""
        text = self.request("GET", "/metrics", port=self.admin_port)[2]
        match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(match.group(1)) if match else 0.0

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

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

    def request(self, method, path, body=None, headers=None, port=None):
        """(status, fields with lower-case names, text of the body)"""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=10)
        fields = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body=body, headers={**fields, **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, text

    def check(self, domain="default", cost=None, path="/v1/check", headers=None, **entries):
        """Checks one descriptor; returns (status, fields, JSON)."""
        descriptor = {"entries": [{"key": key, "value": value} for key, value in entries.items()]}
        if cost is not None:
            descriptor["cost"] = cost
        body = json.dumps({"domain": domain, "descriptors": [descriptor]})
        status, fields, text = self.request("POST", path, body, headers)
        return status, fields, json.loads(text)

    # ---- The Redis protocol, byte by byte

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


class Sidecar(Headgate):
    """A sidecar in front of an upstream on this machine, with an admin address."""

    COMMAND = "sidecar"

    def __init__(self, *upstream_ports, args=(), scheme="http", capacity=1_000_000):
        upstreams = ",".join(f"127.0.0.1:{port}" for port in upstream_ports)
        words = ("--upstream", f"{scheme}://{upstreams}") if upstream_ports else ()
        super().__init__(*words, "--capacity", str(capacity), *args, admin="127.0.0.1:0")


class RedisServer:
    """A real Redis without persistence. `files` are written to its folder first."""

    def __init__(self, *args, files=None, port=None, env=None):
        self.args = args
        self.env = {**os.environ, **(env or {})}
        self.port = port or free_port()
        self.folder = tempfile.mkdtemp()
        for name, text in (files or {}).items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.start()

    def _words(self):
        return [REDIS_SERVER, "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.folder, *self.args]

    def start(self):
        """Starts the server again at the same port, with no data; also after it was killed."""
        self.process = subprocess.Popen(self._words(), stdout=subprocess.DEVNULL, env=self.env)
        until(self._answers, START_SECONDS, f"{REDIS_SERVER} answers")

    def command(self, *words, seconds=10):
        """The reply to a command, as redis-cli prints it without a terminal; empty if there is no
        connection."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
                connection.sendall(encode(*words))
                return as_text(Replies(connection).next()).strip()
        except (ConnectionError, EOFError):
            return ""

    def is_running(self):
        return self.process.poll() is None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class RedisSentinel(RedisServer):
    """A sentinel with these configuration lines."""

    def __init__(self, configuration):
        self._configuration = configuration
        super().__init__()

    def _words(self):
        path = os.path.join(self.folder, "sentinel.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"port {self.port}\ndir {self.folder}\n{self._configuration}")
        return [REDIS_SERVER, path, "--sentinel"]


class RedisCluster:
    """Three primaries with one replica each on this machine. Each node starts with the table of the
    whole cluster, so the nodes negotiate nothing. They accept writes after two seconds, a delay
    built into Redis."""

    SHARDS = 3
    SLOTS = 16384

    def __init__(self, node_timeout_ms=1000):
        count = 2 * self.SHARDS
        self._hosts = [self._host(i) for i in range(count)]
        self._ids = [f"{i + 1:040x}" for i in range(count)]
        ports = [(free_port(), free_port()) for _ in range(count)]
        self.nodes = []
        with ExitStack() as started:
            for i in range(count):
                options = {
                    "cluster-enabled": "yes",
                    "cluster-node-timeout": node_timeout_ms,
                    "cluster-port": ports[i][1],
                    # Keep serving the other slots if some have no server.
                    "cluster-require-full-coverage": "no",
                    "cluster-replica-validity-factor": 0,
                    "repl-diskless-sync-delay": 0,
                    "repl-ping-replica-period": 1,
                }
                args = [word for name, value in options.items() for word in (f"--{name}", str(value))]
                files = {"nodes.conf": self._table(i, ports)}
                self.nodes.append(started.enter_context(self._server(i, *args, files=files, port=ports[i][0])))
            for node in self.nodes:
                until(lambda: self._is_well(node), 30, "the cluster is formed")
            self._processes = started.pop_all()

    def _host(self, _):
        return "127.0.0.1"

    def _server(self, _, *args, **kwargs):
        return RedisServer(*args, **kwargs)

    def _table(self, of, ports):
        lines = []
        for i, (port, bus_port) in enumerate(ports):
            shard = i % self.SHARDS
            first, end = (self.SLOTS * n // self.SHARDS for n in (shard, shard + 1))
            flags = ("myself," if i == of else "") + ("master" if i < self.SHARDS else "slave")
            primary, slots = ("-", f" {first}-{end - 1}") if i < self.SHARDS else (self._ids[shard], "")
            lines.append(f"{self._ids[i]} {self._hosts[i]}:{port}@{bus_port} {flags} {primary} 0 0 {shard + 1} connected{slots}\n")
        return "".join(lines) + f"vars currentEpoch {self.SHARDS} lastVoteEpoch 0\n"

    @staticmethod
    def _is_well(node):
        """The node sees all others, and a replica follows its primary."""
        if "cluster_state:ok" not in node.command("CLUSTER", "INFO") or "fail" in node.command("CLUSTER", "NODES"):
            return False
        replication = node.command("INFO", "replication")
        return "role:master" in replication or "master_link_status:up" in replication

    def wait_until_well(self, seconds=30):
        """Waits until every shard has a primary, and a replica that follows it."""
        until(lambda: all(self._is_well(node) for node in self.nodes), seconds, "the cluster is well")
        until(lambda: all(self.replicas_of(i) for i in range(self.SHARDS)), seconds, "every shard has a replica")

    @property
    def port(self):
        """The port of one node; the other nodes are found through it."""
        return self.nodes[0].port

    def slot_of(self, key):
        tag = key[key.find("{") + 1 : key.find("}")] if "{" in key else key
        return binascii.crc_hqx(tag.encode(), 0) % self.SLOTS

    def shard_of(self, key):
        """The number of the node that is first primary for the shard of `key`. The shard keeps this
        number after a failover."""
        return next(i for i in range(self.SHARDS) if self.slot_of(key) < self.SLOTS * (i + 1) // self.SHARDS)

    def begin_move(self, slot, source, target):
        """Splits the slot between two nodes: the source serves keys that it still has, and the
        target serves all others."""
        self._must(target, "CLUSTER", "SETSLOT", str(slot), "IMPORTING", source.command("CLUSTER", "MYID"))
        self._must(source, "CLUSTER", "SETSLOT", str(slot), "MIGRATING", target.command("CLUSTER", "MYID"))

    def move_keys(self, slot, source, target):
        while keys := source.command("CLUSTER", "GETKEYSINSLOT", str(slot), "10").split():
            # NOKEY: the keys expired meanwhile.
            answer = source.command("MIGRATE", "127.0.0.1", str(target.port), "", "0", "5000", "KEYS", *keys)
            if answer not in ("OK", "NOKEY"):
                raise AssertionError(f"MIGRATE: {answer}")

    def end_move(self, slot, source, target):
        owner = target.command("CLUSTER", "MYID")
        primaries = [self.primary_of(shard) for shard in range(self.SHARDS)]
        for node in (target, source, *(node for node in primaries if node not in (source, target))):
            self._must(node, "CLUSTER", "SETSLOT", str(slot), "NODE", owner)

    @staticmethod
    def _must(node, *words):
        answer = node.command(*words)
        if answer != "OK":
            raise AssertionError(f"{' '.join(words)}: {answer}")

    def shard_nodes(self, shard):
        return [self.nodes[shard], self.nodes[shard + self.SHARDS]]

    def primary_of(self, shard, among=None):
        """The node that calls itself the primary, among the nodes that answer."""
        for node in among or self.shard_nodes(shard):
            if node.is_running() and node.command("ROLE").startswith("master"):
                return node
        return None

    def replicas_of(self, shard):
        return [node for node in self.shard_nodes(shard) if node.is_running() and node.command("ROLE").startswith("slave")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._processes.close()


def read_all(connection):
    """All bytes up to the end of the connection, even if that is a reset."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def run(*command, timeout=60, **kwargs):
    """A finished process with its output as text."""
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **kwargs)


def require_redis():
    require(REDIS_SERVER)


def impossible(reason):
    """Skips the test, also in continuous integration: neither a package nor root would let it run.
    tests/passed_tests.py recognises the words."""
    raise unittest.SkipTest(f"impossible here: {reason}")


def require(*programs):
    """Requires programs that the test needs. If one is missing, the test fails in continuous
    integration, and is skipped with a message elsewhere."""
    require_found({program: shutil.which(program) for program in programs})


def require_found(found):
    """As `require`, for whatever `./dev setup test` installs: by name, whether it was found."""
    missing = ", ".join(name for name, place in found.items() if not place)
    if missing and os.environ.get("CI"):
        raise AssertionError(f"missing: {missing}; hint: ./dev setup test")
    if missing:
        raise unittest.SkipTest(f"missing: {missing}; hint: ./dev setup test")
