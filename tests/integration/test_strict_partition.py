"""A follower of ZooKeeper is cut off from the other servers, but not from its clients. It still
answers reads, from a state that gets older. No decision is made on such a state, and its instances
continue at another server.

The servers and the instances are on networks of their own (namespaces.py)."""

import os
import tempfile
import unittest

from kazoo.client import KazooClient

from harness import free_port, until
from namespaces import HeadgateInside, Network
from strict_history import RULES, Recorded
from zookeeper import ZooKeeperServer

SERVERS = ("one", "two", "three")
# A follower notices after 10 s that its leader is silent. Until then its reads are old.
SYNC_LIMIT = "syncLimit=50\n"
ANSWER_SECONDS = 10  # kazoo waits without end by default


class ZooKeeperInside(ZooKeeperServer):
    """A server of an ensemble, in the namespace of this name, at the address of its home."""

    def __init__(self, network, name, ensemble, number):
        self.name, self.home = name, network.home_of(name)
        self._inside = lambda: network.inside(name)
        super().__init__(f"clientPortAddress=0.0.0.0\n{ensemble}", number, network.prefix(name))

    @property
    def address(self):
        return f"{self.home}:{self.port}"

    def said(self, word):
        with self._inside():
            return super().said(word)


class StrictPartition(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(folder, "edge.yaml")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        self.network = self.enterContext(Network(*SERVERS, "gate"))
        for one, other in (("one", "two"), ("one", "three"), ("two", "three"), *((name, "gate") for name in SERVERS)):
            self.network.join(one, other)
        lines = SYNC_LIMIT + "".join(
            f"server.{n}={self.network.home_of(name)}:{free_port()}:{free_port()}\n" for n, name in enumerate(SERVERS, 1)
        )
        self.servers = [
            self.enterContext(ZooKeeperInside(self.network, name, lines, n)) for n, name in enumerate(SERVERS, 1)
        ]
        for server in self.servers:
            server.wait_until_serving()
        # Each instance has one session. At least one session must be at a follower.
        self.instances = [self.serve(self.servers) for _ in range(3)]
        while self.sessions(self.old()) == 0:
            self.instances.append(self.serve(self.servers))

    def serve(self, servers):
        url = "zk://" + ",".join(server.address for server in servers) + "/r"
        words = ["--rules", self.rules, "--store", url, "--threads", "1", "--store-timeout", "300ms"]
        instance = self.enterContext(HeadgateInside(self.network, "gate", *words))
        until(lambda: instance.check("edge", path="/v1/peek", strict="other")[0] == 200, 20, "it is ready")
        return instance

    def operator(self, server):
        """A client that stays at this server, and does not ask for the newest state."""
        with self.network.inside("gate"):
            client = KazooClient(server.address, timeout=20)
            # Its threads open the connection, in the namespace of the thread that starts them.
            client.start()
        self.addCleanup(client.close)
        self.addCleanup(client.stop)
        return client

    @staticmethod
    def sessions(server):
        return server.said("cons").count("sid=0x")

    def old(self):
        """The follower with the most sessions."""
        return max((server for server in self.servers if server.mode() == "follower"), key=self.sessions)

    @staticmethod
    def version_of(client):
        """The version of the bucket that the load uses."""
        for directory in client.get_children_async("/r/state").get(timeout=ANSWER_SECONDS):
            for name in client.get_children_async(f"/r/state/{directory}").get(timeout=ANSWER_SECONDS):
                if "strict%7Ck" in name or "strict=k" in name or "strict%3Dk" in name:
                    return client.get_async(f"/r/state/{directory}/{name}").get(timeout=ANSWER_SECONDS)[1].version
        raise AssertionError("the bucket is missing")

    def test_a_follower_is_cut_off(self):
        old = self.old()
        others = [server for server in self.servers if server is not old]
        reader, current = self.operator(old), self.operator(others[0])
        # A session that waits for a write reads nothing meanwhile. So this instance never writes, and
        # it stays at the follower.
        watcher = len(self.instances)
        instances = [*self.instances, self.serve([old])]
        load = self.enterContext(Recorded(instances, watchers=[watcher]))
        until(lambda: load.admitted() > 60, 20, "there is load")

        for server in others:
            self.addCleanup(self.network.plug, old.name, server.name)
            self.network.pull(old.name, server.name)
        cut_at = self.version_of(current)
        until(lambda: self.version_of(current) > cut_at + 20, 20, "the instances at other servers continue")
        self.assertLess(self.version_of(reader), self.version_of(current), "a read at the follower is old")

        until(lambda: not old.is_serving(), 40, "the follower has noticed")
        before = list(load.answered)
        went_on = lambda: [now > then + 20 for now, then in zip(load.answered, before)]
        until(lambda: all(went_on()[:watcher]), 30, "all continue elsewhere")
        for server in others:
            self.network.plug(old.name, server.name)
        until(old.is_serving, 30, "the follower is back")
        before = list(load.answered)
        until(lambda: all(went_on()), 20, "all are well")
        load.stop()
        self.assertEqual(load.contradiction(), "")


if __name__ == "__main__":
    unittest.main()
