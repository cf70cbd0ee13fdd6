"""Real ZooKeeper servers on free ports, alone or as an ensemble, for the integration tests."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile

from kazoo.client import KazooClient

from harness import free_port, until

CLASSES = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
TICK_MS = 200  # so sessions last 400 ms to 4 s
START_SECONDS = 60  # three servers may start beside other tests


class ZooKeeperServer:
    """`ensemble`: the lines "server.N=…" of all servers, and the number of this one. A server of an
    ensemble serves when most of them run. `prefix` comes before its command."""

    def __init__(self, ensemble="", number=0, prefix=()):
        self.prefix = list(prefix)
        self.port = free_port()
        self.folder = tempfile.mkdtemp()
        if number:
            self._write("myid", f"{number}\n")
        self._write(
            "zoo.cfg",
            f"tickTime={TICK_MS}\ndataDir={self.folder}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\nforceSync=no\ninitLimit=10\nsyncLimit=5\n"
            + ensemble,
        )
        self.start(wait=not number)

    def start(self, wait=True):
        """Starts the server again, with the nodes that it had."""
        words = [*self.prefix, "java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        words += [f"-Dorg.slf4j.simpleLogger.logFile={self.folder}/log", "-cp", CLASSES]
        words += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{self.folder}/zoo.cfg"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait:
            self.wait_until_serving()

    def wait_until_serving(self):
        until(self.is_serving, START_SECONDS, "ZooKeeper serves")

    def is_serving(self):
        return self.said("srvr").startswith("Zookeeper version")

    def said(self, word):
        """The answer to a four-letter word; empty if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(word.encode())
                answer = b""
                while part := connection.recv(65536):
                    answer += part
                return answer.decode()
        except OSError:
            return ""

    def mode(self):
        """`leader`, `follower` or `standalone`; empty if it does not serve."""
        text = self.said("srvr")
        return text.split("Mode: ")[1].split("\n")[0] if "Mode: " in text else ""

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def url(self, path="/rate-limiter", login=""):
        return f"zk://{login}{self.address}{path}"

    def client(self, **options):
        """A client of another kind than Headgate's, as an operator would use."""
        client = KazooClient(self.address, timeout=4, **options)
        client.start()
        return client

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class ZooKeeperEnsemble:
    """Three servers that hold the same nodes."""

    def __init__(self):
        lines = "".join(f"server.{n}=127.0.0.1:{free_port()}:{free_port()}\n" for n in (1, 2, 3))
        self.servers = [ZooKeeperServer(lines, n) for n in (1, 2, 3)]
        for server in self.servers:
            server.wait_until_serving()

    def url(self, path="/rate-limiter"):
        return "zk://" + ",".join(server.address for server in self.servers) + path

    def client(self):
        client = KazooClient(",".join(server.address for server in self.servers), timeout=4)
        client.start()
        return client

    def leader(self):
        return next(server for server in self.servers if server.mode() == "leader")

    def follower(self):
        return next(server for server in self.servers if server.mode() == "follower")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.__exit__()
