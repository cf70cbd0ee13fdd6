"""Network namespaces that act as separate machines, connected by virtual cables that a test can
pull.

    network = self.enterContext(Network("store", "a"))   # skips the test, and says why, if any step is refused
    network.join("store", "a")                           # a cable; network.address_of("store", "a") is store's end of it
    network.home_of("a")                                 # an address that a keeps without any cable, and that every cable leads to
    network.run("a", "ping", …)                          # a process in the namespace
    with network.inside("a"): socket.create_connection(…)  # a socket of this process in the namespace
    network.pull("store", "a")                           # at store's end: packets from a are lost without an error
    network.pull("a", "store")                           # at a's own end: a has no route any more
    network.plug("a", "store")
"""

import contextlib
import ctypes
import os
import subprocess
import unittest

from harness import Headgate, RedisCluster, RedisServer, impossible, require

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


class Network:
    def __init__(self, *names):
        require("ip")
        self._spaces = {name: f"headgate-{os.getpid()}-{name}" for name in names}
        self._cables = {}
        self._stack = contextlib.ExitStack()
        self._homes = {name: f"10.78.{number}.1" for number, name in enumerate(names)}
        with self._or_skip():
            for name, space in self._spaces.items():
                self._ip("netns", "add", space)
                self._stack.callback(subprocess.run, ["ip", "netns", "del", space], capture_output=True, timeout=20)
                self._ip("-n", space, "link", "set", "lo", "up")
                self._ip("-n", space, "address", "add", f"{self._homes[name]}/32", "dev", "lo")
                # The test's own sockets and servers live in the namespaces too.
                with self.inside(name):
                    pass
                self._run(*self.prefix(name), "true")

    @contextlib.contextmanager
    def _or_skip(self):
        """Skips the test with the reason if this machine refuses a step of the set-up (a container, a
        chroot), or if the test is not run as root."""
        try:
            yield
        except (OSError, subprocess.SubprocessError) as refusal:
            self._stack.close()
            said = getattr(refusal, "stderr", None) or ""
            if os.geteuid() != 0:
                raise unittest.SkipTest("network namespaces need root") from refusal
            impossible(f"no network namespaces: {refusal} {said}".strip())

    def join(self, one, other):
        with self._or_skip():
            self._join(one, other)

    def _join(self, one, other):
        number = len(self._cables) // 2 + 1
        ends = {(one, other): f"10.77.{number}.1", (other, one): f"10.77.{number}.2"}
        self._ip("link", "add", f"to-{other}", "netns", self._spaces[one], "type", "veth",
                 "peer", "name", f"to-{one}", "netns", self._spaces[other])
        for (here, there), address in ends.items():
            self._ip("-n", self._spaces[here], "address", "add", f"{address}/24", "dev", f"to-{there}")
            self._ip("-n", self._spaces[here], "link", "set", f"to-{there}", "up")
        self._cables |= ends
        for here, there in ends:
            self._lead_home(here, there)

    def _lead_home(self, here, there):
        way = ["via", self._cables[there, here], "src", self._homes[here]]
        self._ip("-n", self._spaces[here], "route", "replace", self._homes[there], *way)

    def home_of(self, name):
        return self._homes[name]

    def address_of(self, name, towards):
        return self._cables[name, towards]

    def pull(self, name, other):
        self._ip("-n", self._spaces[name], "link", "set", f"to-{other}", "down")

    def plug(self, name, other):
        self._ip("-n", self._spaces[name], "link", "set", f"to-{other}", "up")
        self._lead_home(name, other)

    def prefix(self, name):
        """The prefix of a command that runs in the namespace."""
        return ["ip", "netns", "exec", self._spaces[name]]

    @contextlib.contextmanager
    def inside(self, name):
        """Sockets that this thread opens inside the block belong to the namespace, and stay
        there."""
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self._spaces[name]}") as space:
            enter(space)
            try:
                yield
            finally:
                enter(home)

    @classmethod
    def _ip(cls, *words):
        cls._run("ip", *words)

    @staticmethod
    def _run(*words):
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()


def enter(space):
    if libc.setns(space.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class HeadgateInside(Headgate):
    def __init__(self, network, name, *args):
        self._inside = lambda: network.inside(name)
        super().__init__(*args, prefix=network.prefix(name))

    def request(self, *args, **kwargs):
        with self._inside():
            return super().request(*args, **kwargs)

    def connect(self):
        with self._inside():
            return super().connect()


class RedisInside(RedisServer):
    """An address that is reachable through every cable."""

    def __init__(self, network, name, *args, **kwargs):
        self._prefix, self._inside = network.prefix(name), lambda: network.inside(name)
        super().__init__("--bind", "0.0.0.0", "--protected-mode", "no", *args, **kwargs)

    def _words(self):
        return [*self._prefix, *super()._words()]

    def command(self, *words, seconds=10):
        with self._inside():
            return super().command(*words, seconds=seconds)

    def _answers(self):
        with self._inside():
            return super()._answers()


class ClusterInside(RedisCluster):
    """A cluster whose nodes run in the namespaces that `places` names: first the primaries, then
    one replica of each."""

    def __init__(self, network, places):
        self._network, self._places = network, places
        super().__init__()

    def _host(self, node):
        return self._network.home_of(self._places[node])

    def _server(self, node, *args, **kwargs):
        announced = ("--cluster-announce-ip", self._host(node))
        return RedisInside(self._network, self._places[node], *announced, *args, **kwargs)
