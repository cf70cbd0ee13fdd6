"""A name in --upstream stands for all its addresses: load is spread over them, and a change is
followed. The test chooses the addresses of names: see given_names.c."""

import json
import os
import socket
import ssl
import tempfile
import threading
import time
import unittest
from http.client import HTTPConnection

from harness import INTEGRATION, Headgate, Sidecar, free_port, require, run, until
from upstreams import Upstream

CLIENT = {"X-Client-Id": "ann"}
NAME = "service.test"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
LOOKUPS = 'headgate_upstream_lookups_total{result="%s"}'


class GivenNames:
    """Pass `env` to a process. `set(name=…)` says the addresses of names while it runs."""

    def __init__(self, test):
        require("cc")
        self._folder = test.enterContext(tempfile.TemporaryDirectory())
        library = os.path.join(self._folder, "given_names.so")
        built = run("cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(INTEGRATION, "given_names.c"), "-ldl")
        test.assertEqual(built.returncode, 0, built.stderr)
        self._path = os.path.join(self._folder, "names")
        self.set()
        # A sanitizer would otherwise insist on being loaded first.
        self.env = {"LD_PRELOAD": library, "GIVEN_NAMES": self._path, "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def set(self, *addresses, name=NAME):
        """Without addresses, the lookup fails."""
        with open(f"{self._path}.new", "w", encoding="utf-8") as file:
            file.write(" ".join((name, *addresses)) + "\n")
        os.rename(f"{self._path}.new", self._path)


class Replica(Upstream):
    """One at an address of its own; all have the same port."""

    def __init__(self, test, address, port, serve=None, tls=None):
        self.serve = serve or (lambda connection, _: connection.sendall(OK) or True)
        self.tls = tls
        self.heads = []
        self.listener = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.port = port
        test.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()


class Load:
    """Clients that ask one request after the other until the end. `statuses` counts the answers."""

    def __init__(self, test, port, clients=8):
        self._port = port
        self._over = threading.Event()
        self.statuses = {}
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        test.addCleanup(self.end)
        for thread in self._threads:
            thread.start()

    def _ask(self):
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        while not self._over.is_set():
            # A POST is not sent again, so a connection that is closed too early would be seen.
            connection.request("POST", "/", body=b"x", headers=CLIENT)
            response = connection.getresponse()
            response.read()
            with self._lock:
                self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
        connection.close()

    def end(self):
        self._over.set()
        for thread in self._threads:
            thread.join()


class SidecarNames(unittest.TestCase):
    def setUp(self):
        self.names = GivenNames(self)
        self.port = free_port()

    def start(self, *args, url=None):
        url = url or f"http://{NAME}:{self.port}"
        words = ("--upstream", url, "--capacity", "1000000", "--upstream-resolve", "100ms", "--threads", "1", *args)
        self.sidecar = self.enterContext(NamedSidecar(*words, env=self.names.env, admin="127.0.0.1:0"))
        return self.sidecar

    def replicas(self, *addresses, **options):
        return [Replica(self, address, self.port, **options) for address in addresses]

    def addresses(self):
        state = json.loads(self.sidecar.request("GET", "/v1/sidecar", port=self.sidecar.admin_port)[2])
        return sorted(address.rsplit(":", 1)[0] for addresses in state.get("names", {}).values() for address in addresses)

    def knows(self, *addresses):
        until(lambda: self.addresses() == sorted(addresses), 10, f"{addresses} are behind the name")

    def ask(self):
        return self.sidecar.request("GET", "/", headers=CLIENT)[0]

    def test_load_is_spread_and_follows_the_addresses(self):
        one, two, three, four = self.replicas("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
        self.names.set("127.0.0.2", "127.0.0.3", "127.0.0.4")
        self.start()
        self.knows("127.0.0.2", "127.0.0.3", "127.0.0.4")
        load = Load(self, self.sidecar.port)
        until(lambda: min(len(r.heads) for r in (one, two, three)) >= 100, 30, "all three get requests")
        self.assertEqual(len(four.heads), 0)

        self.names.set("127.0.0.2", "127.0.0.3")
        self.knows("127.0.0.2", "127.0.0.3")
        # Requests that had begun there end; no others follow.
        before = len(one.heads)
        until(lambda: len(one.heads) >= before + 100, 30, "the load continues")
        gone = len(three.heads)
        until(lambda: len(one.heads) >= before + 300, 30, "the load continues")
        self.assertEqual(len(three.heads), gone)

        self.names.set("127.0.0.5", "127.0.0.3", "127.0.0.2")
        until(lambda: len(four.heads) >= 100, 10, "the new address gets requests")

        self.names.set()
        failed = self.sidecar.metric(LOOKUPS % "failed")
        until(lambda: self.sidecar.metric(LOOKUPS % "failed") >= failed + 3, 10, "lookups fail")
        before = [len(r.heads) for r in (one, two, four)]
        until(lambda: all(len(r.heads) >= b + 100 for r, b in zip((one, two, four), before)), 30, "all three still get requests")
        self.assertEqual(self.addresses(), ["127.0.0.2", "127.0.0.3", "127.0.0.5"])
        self.assertEqual(self.sidecar.metric("headgate_upstream_addresses"), 3)
        self.assertGreater(self.sidecar.metric(f'headgate_upstream_lookup_age_seconds{{upstream="{NAME}:{self.port}"}}'), 0.2)
        load.end()
        self.assertEqual(set(load.statuses), {200}, "no request has failed")
        self.assertEqual(self.sidecar.errors().count("upstream.lookup_failed"), 1)

    def test_an_address_that_stays_keeps_its_connections(self):
        connections = []

        def serve(connection, _):
            if connection not in connections:
                connections.append(connection)
            connection.sendall(OK)
            return True

        self.replicas("127.0.0.2", serve=serve)
        self.names.set("127.0.0.2")
        self.start()
        self.knows("127.0.0.2")
        for number in range(3, 8):
            self.assertEqual(self.ask(), 200)
            self.names.set(f"127.0.0.{number}", "127.0.0.2")
            self.knows("127.0.0.2", f"127.0.0.{number}")
            self.names.set("127.0.0.2")
            self.knows("127.0.0.2")
        self.assertEqual(self.ask(), 200)
        self.assertEqual(len(connections), 1)

    def test_a_request_on_an_address_that_goes_ends_there(self):
        go_on = threading.Event()

        def serve(connection, _):
            go_on.wait(30)
            connection.sendall(OK)
            return True

        old, = self.replicas("127.0.0.2", serve=serve)
        new, = self.replicas("127.0.0.3")
        self.names.set("127.0.0.2")
        self.start()
        self.knows("127.0.0.2")
        connection = HTTPConnection("127.0.0.1", self.sidecar.port, timeout=30)
        connection.request("POST", "/", body=b"x", headers=CLIENT)
        until(lambda: old.heads, 10, "the request has arrived")
        self.names.set("127.0.0.3")
        self.knows("127.0.0.3")
        self.assertEqual(self.ask(), 200)
        self.assertEqual((len(old.heads), len(new.heads)), (1, 1))
        go_on.set()
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_a_name_that_is_unknown_at_the_start(self):
        self.replicas("127.0.0.2")
        self.start()
        self.assertEqual(self.ask(), 502)
        self.assertEqual(self.addresses(), [])
        until(lambda: "upstream.lookup_failed" in self.sidecar.errors(), 10, "the log says so")
        self.names.set("127.0.0.2")
        until(lambda: self.ask() == 200, 10, "requests pass")
        self.knows("127.0.0.2")

    def test_a_service_that_listens_on_one_of_the_addresses(self):
        """As 127.0.0.1 and ::1 of a host: no request fails, all connections can be used, nothing is logged."""
        arrived = threading.Semaphore(0)
        go_on = threading.Event()

        def serve(connection, head):
            if head.startswith("GET /held"):
                arrived.release()
                go_on.wait(30)
            connection.sendall(OK)
            return True

        self.replicas("127.0.0.2", serve=serve)
        self.names.set("127.0.0.3", "127.0.0.2")  # nobody listens on the first one
        self.start("--upstream-connections", "8", "--check-path", "/healthz", "--check-interval", "200ms")
        self.knows("127.0.0.2", "127.0.0.3")
        for _ in range(100):
            self.assertEqual(self.ask(), 200)
        until(lambda: self.sidecar.metric('headgate_upstream_checks_total{result="passed"}') >= 5, 20, "checks pass")
        failed = self.sidecar.metric('headgate_upstream_checks_total{result="failed"}')
        self.assertLessEqual(failed, 2, "before the other address had accepted")
        held = [HTTPConnection("127.0.0.1", self.sidecar.port, timeout=30) for _ in range(8)]
        for number, connection in enumerate(held):
            connection.request("GET", "/held", headers={"X-Client-Id": f"client{number}"})
        for _ in held:
            self.assertTrue(arrived.acquire(timeout=10), "all eight are at the service")
        go_on.set()
        for connection in held:
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
        self.assertNotIn("WARN", self.sidecar.errors().upper())

    def test_localhost_is_this_machine_and_not_looked_up(self):
        for address in ("127.0.0.1", "::1"):
            with self.subTest(address):
                self.port = free_port()
                self.replicas(address)
                sidecar = self.start(url=f"http://localhost:{self.port}")
                for _ in range(5):
                    self.assertEqual(self.ask(), 200)
                self.assertEqual(sidecar.metric("headgate_upstream_addresses"), 1)
                self.assertEqual(sidecar.metric(LOOKUPS % "answered") + sidecar.metric(LOOKUPS % "failed"), 0)
                self.assertEqual(self.addresses(), [])

    def test_the_name_is_what_the_certificate_must_have(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        words = ("-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x", "-addext", f"subjectAltName=DNS:{NAME}")
        made = run("openssl", "req", "-x509", *words, "-keyout", key, "-out", certificate)
        self.assertEqual(made.returncode, 0, made.stderr)
        seen = []
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        tls.sni_callback = lambda _, name, __: seen.append(name)
        one, two = self.replicas("127.0.0.2", "127.0.0.3", tls=tls)
        self.names.set("127.0.0.2", "127.0.0.3")
        self.start("--upstream-ca-file", certificate, url=f"https://{NAME}:{self.port}")
        self.knows("127.0.0.2", "127.0.0.3")
        until(lambda: self.ask() == 200 and one.heads and two.heads, 10, "both get requests")
        self.assertEqual(set(seen), {NAME})

    def test_a_change_of_the_upstreams_may_name_another_name(self):
        self.replicas("127.0.0.2", "127.0.0.3")
        self.start(url=f"http://127.0.0.2:{self.port}")
        self.assertEqual(self.addresses(), [])
        self.names.set("127.0.0.3", "127.0.0.2")
        self.change(NAME)
        self.knows("127.0.0.2", "127.0.0.3")
        self.assertEqual(self.ask(), 200)

    def test_a_name_that_is_left_and_named_again_is_new(self):
        """Its addresses are forgotten meanwhile, so a request needs a lookup that works."""
        self.replicas("127.0.0.2", "127.0.0.3")
        self.names.set("127.0.0.2")
        self.start()
        self.knows("127.0.0.2")
        self.names.set()
        until(lambda: self.sidecar.metric(LOOKUPS % "failed") >= 1, 10, "lookups fail")
        self.assertEqual(self.ask(), 200)
        self.change("127.0.0.3")
        self.assertEqual(self.ask(), 200)
        self.change(NAME)
        self.assertEqual(self.ask(), 502)
        self.assertEqual(self.addresses(), [])
        self.names.set("127.0.0.2")
        until(lambda: self.ask() == 200, 10, "requests pass")
        self.knows("127.0.0.2")

    def change(self, host):
        change = json.dumps({"upstream": f"http://{host}:{self.port}"})
        self.assertEqual(self.sidecar.request("PATCH", "/v1/sidecar", change, port=self.sidecar.admin_port)[0], 200)

    def test_an_address_that_does_not_answer_hardly_delays_requests(self):
        # A listener whose queue is full drops SYNs.
        silent = self.enterContext(socket.socket())
        silent.bind(("127.0.0.3", self.port))
        silent.listen(0)
        for _ in range(6):
            filler = self.enterContext(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.3", self.port))
        self.replicas("127.0.0.2")
        self.names.set("127.0.0.3", "127.0.0.2")
        self.start("--connect-timeout", "30s", "--queue-timeout", "30s")
        self.knows("127.0.0.2", "127.0.0.3")
        for _ in range(6):
            began = time.monotonic()
            self.assertEqual(self.ask(), 200)
            self.assertLess(time.monotonic() - began, 15)
        self.assertGreaterEqual(self.sidecar.metric('headgate_upstream_connects_total{result="begun"}'), 2, "it was asked")

    def test_a_restart_passes_on_a_changed_name_and_fails_no_request(self):
        self.replicas("127.0.0.2", "127.0.0.3")
        self.names.set("127.0.0.2", "127.0.0.3")
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "handover")
        words = ("--handover", path)
        first = self.start(*words, url=f"http://127.0.0.2:{self.port}")
        change = json.dumps({"upstream": f"http://{NAME}:{self.port}"})
        self.assertEqual(first.request("PATCH", "/v1/sidecar", change, port=first.admin_port)[0], 200)
        self.knows("127.0.0.2", "127.0.0.3")
        load = Load(self, first.port)
        until(lambda: load.statuses.get(200, 0) >= 100, 20, "requests pass")
        self.start(*words, url=f"http://127.0.0.2:{self.port}")
        self.assertEqual(self.sidecar.port, first.port)
        first.process.wait(30)
        self.knows("127.0.0.2", "127.0.0.3")
        before = load.statuses[200]
        until(lambda: load.statuses[200] >= before + 100, 20, "requests pass")
        load.end()
        self.assertEqual(set(load.statuses), {200})

    def test_a_restart_passes_on_the_addresses_if_no_name_server_answers(self):
        self.replicas("127.0.0.2", "127.0.0.3")
        self.names.set("127.0.0.2", "127.0.0.3")
        words = ("--handover", os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "handover"))
        first = self.start(*words)
        self.knows("127.0.0.2", "127.0.0.3")
        self.names.set()
        second = self.start(*words)
        first.process.wait(30)
        self.knows("127.0.0.2", "127.0.0.3")
        until(lambda: second.metric(LOOKUPS % "failed") >= 2, 10, "lookups fail")
        self.assertEqual(self.ask(), 200)
        self.assertEqual(second.metric(LOOKUPS % "answered"), 0)


class NamedSidecar(Headgate):
    COMMAND = Sidecar.COMMAND


if __name__ == "__main__":
    unittest.main()
