"""A sidecar is restarted under load: the new process takes over the sockets of the old one, and no request fails."""

import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from harness import BINARY, START_SECONDS, Sidecar, free_port, require, run, until, wait
from test_tls import Authority
from upstreams import Nginx, Upstream, read_exactly

REQUEST = b"GET /small HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n"
# The event loops of the processes after the first one: as many, fewer, more.
THREADS = (2, 1, 3, 2)
# For wrk: each connection thinks for a while, so that they do not ask together.
LOAD = """
wrk.headers["X-Client-Id"] = "ann"
delay = function() return math.random(0, 200) end
"""


def ask(connection):
    """Sends a request and reads its answer. Returns whether the connection stays open."""
    connection.sendall(REQUEST)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = connection.recv(1)
        if not part:
            raise ValueError(f"the connection ended in the head: {head}")
        head += part
    if not head.startswith(b"HTTP/1.1 200 ") or read_exactly(connection, 6) != b"hello\n":
        raise ValueError(f"a wrong answer: {head}")
    return b"\r\nconnection: close\r\n" not in head.lower()


class KeptConnections(threading.Thread):
    """Asks again and again on one connection, and makes another only after `Connection: close`. Never asks twice: each
    request that gets no answer is a failure."""

    def __init__(self, port, tls=None):
        super().__init__(daemon=True)
        self.port = port
        self.tls = tls
        self.answered = 0
        self.connections = 0
        self.failures = []
        self.ends = threading.Event()
        self.start()

    def run(self):
        while not self.ends.is_set():
            self.connections += 1
            try:
                with self.connect() as connection:
                    while not self.ends.is_set():
                        stays_open = ask(connection)
                        self.answered += 1
                        if not stays_open:
                            break
            except (OSError, ValueError) as error:
                self.failures.append(repr(error))
                return

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        return self.tls.wrap_socket(plain, server_hostname="localhost") if self.tls else plain


class Http2:
    """A client of Node.js that asks one request after the other; see http2_requests.mjs."""

    SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "http2_requests.mjs")

    def __init__(self, test, port):
        self.process = subprocess.Popen(
            ("node", self.SCRIPT, str(port)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        test.addCleanup(self.process.kill)
        test.assertEqual(self.process.stdout.readline(), "asking\n")

    def end(self):
        """Its last line, which says how it went."""
        return json.loads(self.process.communicate(timeout=60)[0])


class Restarts(unittest.TestCase):
    def setUp(self):
        require("nginx", "node", "openssl")
        self.nginx = Nginx(self)
        self.path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "handover")

    def start(self, threads=2, *args, upstream=None, capacity=1_000_000):
        words = ("--handover", self.path, "--threads", str(threads), *args)
        sidecar = self.enterContext(Sidecar(upstream or self.nginx.port, args=words, capacity=capacity))
        until(lambda: "sidecar.started" in sidecar.errors(), START_SECONDS, "the sidecar waits for a successor")
        return sidecar


class Restart(Restarts):

    def test_no_request_fails(self):
        authority = Authority(self.enterContext(tempfile.TemporaryDirectory()))
        certificate, key = authority.sign("server", "DNS:localhost")
        tls = ssl.create_default_context(cafile=authority.file)
        tls_port = free_port()
        more = ("--listen", f"tls:127.0.0.1:{tls_port}", "--tls-certificate-file", certificate, "--tls-key-file", key)
        old = self.start(2, *more)
        port, admin_port = old.port, old.admin_port
        clients = [KeptConnections(port) for _ in range(4)] + [KeptConnections(tls_port, tls) for _ in range(2)]
        http2 = [Http2(self, port) for _ in range(2)]
        asked = lambda: [client.answered for client in clients]
        for threads in THREADS:
            before = asked()
            until(lambda: all(now > then + 50 for now, then in zip(asked(), before)), 30, "all clients are served")
            new = self.start(threads, *more)
            self.assertEqual((new.port, new.admin_port), (port, admin_port))
            self.assertEqual(old.process.wait(START_SECONDS), 0, old.errors())
            self.assertIn("has_successor=true", old.errors())
            self.assertIn("all_requests_finished=true", old.errors())
            self.assertEqual(new.request("GET", "/readyz", port=admin_port)[0], 200)
            old = new
        before = asked()
        until(lambda: all(now > then + 50 for now, then in zip(asked(), before)), 30, "all clients are served")
        for client in clients:
            client.ends.set()
        for client in clients:
            client.join(60)
            self.assertEqual(client.failures, [])
        for client in clients:
            self.assertGreater(client.connections, len(THREADS))
        for client in http2:
            said = client.end()
            self.assertIsNone(said["failure"])
            self.assertGreaterEqual(said["sessions"], len(THREADS))
            self.assertGreater(said["answered"], 100)

    def test_an_idle_connection_is_not_closed_while_the_old_process_waits(self):
        old = self.start()
        with old.connect() as idle:
            self.assertTrue(ask(idle))
            new = self.start()
            until(lambda: "sidecar.drain_began" in old.errors(), 10, "the old process leaves")
            self.assertIsNone(old.process.poll())
            until(lambda: not ask(idle), 10, "an answer that closes the connection")
            self.assertEqual(idle.recv(1), b"")
        self.assertEqual(old.process.wait(START_SECONDS), 0)
        self.assertEqual(new.request("GET", "/small", headers={"X-Client-Id": "ann"})[0], 200)

    def test_a_process_that_cannot_start_leaves_the_old_one_alone(self):
        old = self.start()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = run(BINARY, "sidecar", "--handover", self.path, "--capacity", "1", "--listen", "127.0.0.1:0",
                       "--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--admin-listen", "none",
                       "--upstream", f"http://127.0.0.1:{self.nginx.port}")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(old.request("GET", "/small", headers={"X-Client-Id": "ann"})[0], 200)
        new = self.start()
        self.assertEqual(new.port, old.port)
        self.assertEqual(old.process.wait(START_SECONDS), 0)

    def test_the_socket_of_a_process_that_is_gone_is_replaced(self):
        old = self.start()
        old.process.kill()
        old.process.wait()
        self.assertTrue(os.path.exists(self.path))
        new = self.start()
        self.assertEqual(new.request("GET", "/small", headers={"X-Client-Id": "ann"})[0], 200)
        self.assertEqual(new.stop(), 0)
        self.assertFalse(os.path.exists(self.path))


class ThePath(Restarts):
    """Only a socket that nobody needs is replaced; other files at the path stay."""

    def refused(self, *args):
        """The error of a start that fails."""
        done = run(BINARY, "sidecar", "--handover", self.path, "--capacity", "1", "--listen", "127.0.0.1:0",
                   "--admin-listen", "none", "--upstream", f"http://127.0.0.1:{self.nginx.port}", *args)
        self.assertIn("hint: ", done.stderr)
        return done.returncode, done.stderr

    def test_a_file_that_is_not_a_socket_stays(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("precious")
        status, error = self.refused()
        self.assertEqual(status, 3)
        self.assertIn("is not a socket, and stays as it is", error)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        os.remove(self.path)
        os.mkdir(self.path)
        self.assertEqual(self.refused()[0], 3)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["handover"])

    def test_the_socket_of_another_program_stays(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.path)
            other.listen()
            status, error = self.refused()
            self.assertEqual(status, 3)
            self.assertIn("another program listens on this socket", error)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self.path)

    def test_an_address_for_clients_is_another_path(self):
        status, error = self.refused("--listen", "unix:" + self.path)
        self.assertEqual(status, 2)
        self.assertIn("names a socket for clients", error)
        # The same file under two names.
        folder = os.path.dirname(self.path)
        os.symlink(folder, folder + "/link")
        status, error = self.refused("--listen", f"unix:{folder}/link/handover")
        self.assertEqual(status, 3)
        self.assertIn("another process has it", error)
        self.assertFalse(os.path.exists(self.path))

    def silent(self):
        peer = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        peer.settimeout(START_SECONDS)
        peer.connect(self.path)
        return peer

    def test_silent_processes_hold_up_no_restart(self):
        old = self.start()
        silent = [self.silent() for _ in range(3)]
        new = self.start()
        self.assertEqual(new.port, old.port)
        self.assertEqual(old.process.wait(START_SECONDS), 0, old.errors())
        for peer in silent:
            self.assertEqual(peer.recv(1), b"")
        # The log names them, even if nobody wants to take over.
        self.assertEqual(self.silent().recv(1), b"")
        self.assertRegex(new.errors(), rf"handover\.peer_dropped process={os.getpid()} after=1s")
        self.assertEqual(new.request("GET", "/small", headers={"X-Client-Id": "ann"})[0], 200)

    def test_the_third_process_is_told_which_one_has_the_turn(self):
        old = self.start()
        second = self.silent()
        second.send(b"hello")
        self.assertTrue(second.recv(4096))
        status, error = self.refused()
        self.assertEqual(status, 3)
        self.assertIn(f"another process is taking over already: {os.getpid()}", error)
        self.assertNotIn("stop the process that has the addresses", error)
        second.close()
        self.assertEqual(self.start().port, old.port)


class Waiting(Restarts):
    """Requests that wait when the process leaves are answered, not cut off."""

    QUEUE = ("--rule", "client: 1/hour burst 20 queue")

    def waiting(self, sidecar, metric, versions):
        """Curls whose requests wait, as `metric` shows."""
        words = ("curl", "--silent", "--include", "--max-time", "60", "-H", "X-Client-Id: ann")
        url = f"http://127.0.0.1:{sidecar.port}/small"
        before = sidecar.metric(metric) or 0
        curls = [subprocess.Popen((*words, version, url), stdout=subprocess.PIPE, text=True) for version in versions]
        for curl in curls:
            self.addCleanup(curl.kill)
        until(lambda: sidecar.metric(metric) == before + len(curls), 20, f"{len(curls)} requests wait")
        return curls

    def check_refused(self, curls):
        for curl in curls:
            text = curl.communicate(timeout=60)[0].lower()
            self.assertEqual(curl.returncode, 0, text)
            self.assertRegex(text, r"^http/(1\.1|2) 503")
            self.assertIn("\nretry-after: 1\n", text)
            if text.startswith("http/1.1"):
                self.assertIn("\nconnection: close\n", text)

    def test_requests_whose_turn_comes_too_late_are_refused_at_once(self):
        versions = ("--http1.1", "--http1.1", "--http2-prior-knowledge")
        for leave in ("signal", "successor"):
            with self.subTest(leave):
                old = self.start(2, *self.QUEUE, "--drain-timeout", "10m")
                self.assertEqual(ask_as(old, "ann")[0], 200)
                curls = self.waiting(old, "headgate_auth_held", versions)
                if leave == "signal":
                    old.process.terminate()
                else:
                    self.start(2, *self.QUEUE)
                self.check_refused(curls)
                self.assertEqual(old.process.wait(START_SECONDS), 0, old.errors())
                self.assertIn("all_requests_finished=true", old.errors())

    def test_requests_that_wait_for_a_connection_are_refused_at_the_end(self):
        begins, ends = threading.Event(), threading.Event()
        self.addCleanup(ends.set)

        def hang(_, __):
            begins.set()
            ends.wait(60)
            return False

        upstream = Upstream(self, hang).port
        old = self.start(1, "--drain-timeout", "4s", "--upstream-connections", "1", upstream=upstream)
        asked = subprocess.Popen(("curl", "--silent", "-H", "X-Client-Id: bob", f"http://127.0.0.1:{old.port}/"))
        self.addCleanup(asked.wait)
        self.addCleanup(asked.kill)
        self.assertTrue(begins.wait(10), "the only connection is used")
        curls = self.waiting(old, "headgate_upstream_queue", ("--http1.1", "--http2-prior-knowledge"))
        old.process.terminate()
        self.check_refused(curls)


def ask_as(sidecar, client):
    return sidecar.request("GET", "/small", headers={"X-Client-Id": client})


class State(Restarts):
    """The state that the new process gets from the old one."""

    def restart(self, old, *args, **more):
        new = self.start(2, *args, **more)
        self.assertEqual(old.process.wait(START_SECONDS), 0, old.errors())
        self.assertNotIn("sidecar.state_not_taken", new.errors())
        return new

    def test_the_use_of_the_cycle_is_still_counted(self):
        args = ("--cycle", "5m")
        sidecar = self.start(2, *args, capacity=20)
        for client in ("ann", "bob"):
            self.assertEqual(ask_as(sidecar, client)[0], 200)
        used = 1
        while ask_as(sidecar, "ann")[0] == 200:
            used += 1
        self.assertEqual(used, 10)
        for _ in range(2):
            sidecar = self.restart(sidecar, *args, capacity=20)
            status, fields, _ = ask_as(sidecar, "ann")
            self.assertEqual(status, 429)
            self.assertLessEqual(int(fields["retry-after"]), 300)
        self.assertEqual([ask_as(sidecar, "bob")[0] for _ in range(10)], [200] * 9 + [429])
        # Another capacity holds for the rest of the cycle, of which nearly everything is left.
        sidecar = self.restart(sidecar, *args, capacity=40)
        used = 0
        while ask_as(sidecar, "ann")[0] == 200:
            used += 1
        self.assertIn(used, range(5, 11))

    def test_what_was_changed_live_stays(self):
        other = Nginx(self)
        sidecar = self.start()
        change = json.dumps({"mode": "passthrough", "upstream": f"http://127.0.0.1:{other.port}"})
        status, _, state = sidecar.request("PATCH", "/v1/sidecar", body=change, port=sidecar.admin_port)
        self.assertEqual(status, 200)

        def settings(text):  # the addresses that the upstream had before may still drain
            return {name: value for name, value in json.loads(text).items() if name != "addresses"}

        for _ in range(2):
            sidecar = self.restart(sidecar)
            now = sidecar.request("GET", "/v1/sidecar", port=sidecar.admin_port)[2]
            self.assertEqual(settings(now), settings(state))
            self.assertEqual(ask_as(sidecar, "ann")[0], 200)
        # A flag that is not as before is what the operator wants now.
        sidecar = self.restart(sidecar, upstream=other.port)
        sidecar = self.restart(sidecar, "--mode", "passthrough")
        sidecar = self.restart(sidecar)
        now = sidecar.request("GET", "/v1/sidecar", port=sidecar.admin_port)[2]
        self.assertEqual(settings(now), {"mode": "enforce", "upstream": f"http://127.0.0.1:{self.nginx.port}"})

    def test_the_found_capacity_is_there_at_once(self):
        require("wrk")
        busy = threading.Semaphore(4)

        def serve(connection, _):
            with busy:
                wait(0.02)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True

        upstream = Upstream(self, serve).port
        sidecar = self.start(upstream=upstream, capacity="auto")
        script = os.path.join(self.nginx.folder, "load.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LOAD)
        words = ("wrk", "-t1", "-c60", "-d300s", "-s", script, f"http://127.0.0.1:{sidecar.port}/")
        load = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        found = lambda: sidecar.metric("headgate_share_pool_capacity")
        until(found, 120, "the capacity is found")
        load.kill()
        load.wait()
        before = found()
        sidecar = self.restart(sidecar, upstream=upstream, capacity="auto")
        self.assertAlmostEqual(found(), before, delta=before / 5)
        self.assertGreater(sidecar.metric("headgate_upstream_base_seconds"), 0)


if __name__ == "__main__":
    unittest.main()
