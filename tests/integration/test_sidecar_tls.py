"""TLS of the sidecar: curl and Python as clients, nginx as an upstream, real certificates of openssl."""

import os
import re
import socket
import ssl
import subprocess
import tempfile
import unittest

from harness import BINARY, Sidecar, free_port, log_file, read_all, require, run, until
from test_sidecar import MIB, peak_memory, sha256
from test_tls import Authority
from upstreams import Nginx, Upstream

CLIENT = ("-H", "X-Client-Id: ann")


class OnlyTls(Sidecar):
    """A sidecar whose only address for clients speaks TLS."""

    def __init__(self, upstream_port, *args, capacity=1_000_000):
        self.args = [BINARY, "sidecar", "--listen", "tls:127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
                     "--upstream", f"http://127.0.0.1:{upstream_port}", "--capacity", str(capacity), *args]
        self.log = log_file()
        self._said = ""
        self.process = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=self.log)
        self.port = self.wait_for(r"listening on tls:127\.0\.0\.1:(\d+)\n")
        self.admin_port = self.wait_for(r"admin on 127\.0\.0\.1:(\d+)\n")


def echo_fields(connection, head):
    """Answers with the head of the request."""
    body = head.encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return True


class Certificates(unittest.TestCase):
    def setUp(self):
        require("openssl", "curl")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.authority = Authority(self.folder)
        self.certificate, self.key = self.authority.sign("server", "DNS:localhost", "IP:127.0.0.1")

    def curl(self, *words):
        done = run("curl", "--silent", "--show-error", "--max-time", "30", "--cacert", self.authority.file, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Clients(Certificates):
    def start(self, *args):
        self.upstream = Upstream(self, echo_fields)
        self.sidecar = self.enterContext(
            OnlyTls(self.upstream.port, "--tls-certificate-file", self.certificate, "--tls-key-file", self.key, *args)
        )
        self.url = f"https://localhost:{self.sidecar.port}"

    def connect(self, *protocols):
        context = ssl.create_default_context(cafile=self.authority.file)
        if protocols:
            context.set_alpn_protocols(protocols)
        raw = socket.create_connection(("127.0.0.1", self.sidecar.port), timeout=10)
        connection = context.wrap_socket(raw, server_hostname="localhost")
        self.addCleanup(connection.close)
        return connection

    def test_both_versions_of_http_by_alpn(self):
        self.start("--forwarded", "append")
        for words, version in (((), "2"), (("--http1.1",), "1.1"), (("--no-alpn",), "1.1")):
            with self.subTest(words):
                text = self.curl(*words, *CLIENT, "--write-out", "\nversion %{http_version}", f"{self.url}/a")
                self.assertTrue(text.startswith("GET /a HTTP/1.1\n"), text)
                self.assertIn("X-Forwarded-Proto: https\n", text)
                self.assertIn("proto=https", text)
                self.assertTrue(text.endswith(f"version {version}"), text)

    def test_a_client_must_speak_what_it_has_agreed_on(self):
        self.start()
        request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n"
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
        for protocol, sent, answer in (("h2", request, b"HTTP/1.1 421 "), ("http/1.1", preface, b"\0\0\0\4\0\0\0\0\0\0\0\x08\x07")):
            with self.subTest(protocol):
                connection = self.connect(protocol)
                self.assertEqual(connection.selected_alpn_protocol(), protocol)
                connection.sendall(sent)
                self.assertEqual(read_all(connection)[: len(answer)], answer)
        self.assertEqual(self.upstream.heads, [])

    def test_a_plain_client_gets_no_answer(self):
        self.start()
        with self.sidecar.connect() as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client-Id: ann\r\n\r\n")
            self.assertNotIn(b"HTTP/1.1 200", read_all(plain))
        self.assertEqual(self.upstream.heads, [])

    def test_a_new_certificate_is_followed(self):
        self.start()
        first = self.connect().getpeercert()["serialNumber"]
        self.authority.sign("server", "DNS:localhost", "IP:127.0.0.1")
        until(lambda: self.connect().getpeercert()["serialNumber"] != first, 10, "the new certificate is served")
        self.assertEqual(self.sidecar.metric('headgate_certificate_reloads_total{result="refused"}'), 0)

    def test_the_name_in_the_certificate_is_the_client(self):
        certificate, key = self.authority.sign("ann", "URI:spiffe://fleet/ann")
        self.start("--tls-client-ca-file", self.authority.file, "--client-from-certificate")
        words = ("--cert", certificate, "--key", key, "-H", "X-Client-Id: bob")
        for version in ("--http1.1", "--http2"):
            text = self.curl(version, *words, f"{self.url}/")
            self.assertEqual(re.findall(r"(?im)^x-client-id: (.*)$", text), ["spiffe://fleet/ann"])
        allowed = 'headgate_share_requests_total{client="spiffe://fleet/ann",outcome="allowed"}'
        self.assertEqual(self.sidecar.metric(allowed), 2)
        without = run("curl", "--silent", "--max-time", "30", "--cacert", self.authority.file, f"{self.url}/")
        self.assertNotEqual(without.returncode, 0)


    def ask_as(self, common_name):
        certificate, key = self.authority.sign("client", common_name=common_name)
        return self.curl("--cert", certificate, "--key", key, "-H", "X-Client-Id: bob", "--include", f"{self.url}/")

    def test_a_name_may_have_what_a_field_may_have(self):
        self.start("--tls-client-ca-file", self.authority.file, "--client-from-certificate")
        for common_name in ("Alice Smith", "José"):
            with self.subTest(common_name):
                text = self.ask_as(common_name)
                self.assertEqual(re.findall(r"(?im)^x-client-id: (.*)$", text), [common_name])
        self.assertEqual(self.sidecar.metric('headgate_share_requests_total{client="Alice Smith",outcome="allowed"}'), 1)

    def test_a_name_that_no_field_may_have_is_refused(self):
        self.start("--tls-client-ca-file", self.authority.file, "--client-from-certificate", "--anonymous", "nobody")
        text = self.ask_as("a\tb")
        self.assertIn(" 403", text.splitlines()[0])
        self.assertIn("the name in the client's certificate cannot be a client's id", text)
        self.assertEqual(self.upstream.heads, [])
        self.assertEqual(self.sidecar.metric('headgate_proxy_requests_total{outcome="misnamed"}'), 1)

    def test_a_common_name_does_not_let_a_client_in(self):
        self.start("--tls-client-ca-file", self.authority.file, "--tls-client-name", "ann")
        for names, lets_in in ((("DNS:ann",), True), ((), False)):
            certificate, key = self.authority.sign("ann", *names)
            words = ("--cacert", self.authority.file, "--cert", certificate, "--key", key, *CLIENT, f"{self.url}/")
            done = run("curl", "--silent", "--max-time", "30", *words)
            self.assertEqual(done.returncode == 0, lets_in, names)

    def test_a_certificate_that_is_out_of_date_is_logged(self):
        self.certificate, self.key = self.authority.sign("old", "DNS:localhost", days=-1)
        self.start()
        until(lambda: "certificates.out_of_date" in self.sidecar.errors(), 10, "the log says so")
        self.assertIn("old.crt' expired on ", self.sidecar.errors())


def answer_without_length(connection, head):
    """Ends its answer with the connection, and announces that end if the path says so."""
    sized = b"Content-Length: 4\r\n" if " /sized" in head else b""
    connection.sendall(b"HTTP/1.1 200 OK\r\n%s\r\npart" % sized)
    if " /announced" in head:
        connection.unwrap()  # sends close_notify
    return False


class Upstreams(Certificates):
    def start(self, scheme, *args, host="127.0.0.1"):
        self.nginx = Nginx(self, tls=(self.certificate, self.key))
        self.sidecar = self.enterContext(
            Sidecar(args=("--upstream", f"{scheme}://{host}:{self.nginx.port}", *args))
        )

    def ask(self):
        return self.sidecar.request("GET", "/small", headers={"X-Client-Id": "ann"})

    def test_http1_and_http2(self):
        for scheme in ("https", "h2"):
            with self.subTest(scheme):
                self.start(scheme, "--upstream-ca-file", self.authority.file)
                for _ in range(3):
                    status, _, text = self.ask()
                    self.assertEqual((status, text), (200, "hello\n"))

    def test_an_upstream_that_is_not_trusted_gets_no_request(self):
        other = Authority(self.folder, "other")
        cases = (
            ((), "127.0.0.1"),  # the system's authorities
            (("--upstream-ca-file", other.file), "127.0.0.1"),
            (("--upstream-ca-file", self.authority.file, "--upstream-tls-name", "other.example"), "127.0.0.1"),
        )
        for args, host in cases:
            with self.subTest(args):
                self.start("https", *args, host=host)
                status, fields, _ = self.ask()
                self.assertEqual(status, 502)
                self.assertEqual(fields["proxy-status"], "headgate; error=tls_certificate_error")
                self.assertRegex(self.sidecar.errors(), r"upstream\.handshake_failed .*certificate verify failed")

    def test_an_upstream_without_tls_is_told_from_one_that_is_not_trusted(self):
        plain = Nginx(self)
        words = ("--upstream", f"https://127.0.0.1:{plain.port}", "--upstream-ca-file", self.authority.file)
        self.sidecar = self.enterContext(Sidecar(args=words))
        status, fields, _ = self.ask()
        self.assertEqual(status, 502)
        self.assertEqual(fields["proxy-status"], "headgate; error=tls_protocol_error")
        self.assertIn("upstream.handshake_failed", self.sidecar.errors())
        connects = 'headgate_upstream_connects_total{result="%s"}'
        until(lambda: self.sidecar.metric(connects % "failed_tls"), 10, "the failure is counted")

    def test_new_authorities_are_followed(self):
        followed = os.path.join(self.folder, "followed.pem")

        def write(text):
            with open(followed + ".new", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(followed + ".new", followed)

        def reloads(result):
            return self.sidecar.metric(f'headgate_certificate_reloads_total{{result="{result}"}}')

        other = Authority(self.folder, "other")
        with open(other.file, encoding="utf-8") as file:
            write(file.read())
        self.start("https", "--upstream-ca-file", followed)
        self.assertEqual(self.ask()[0], 502)
        with open(self.authority.file, encoding="utf-8") as file:
            write(file.read())
        until(lambda: self.ask()[0] == 200, 10, "the upstream is trusted")
        write("nonsense\n")
        until(lambda: reloads("refused") == 1, 10, "the file is refused")
        self.assertEqual(reloads("loaded"), 1)
        self.assertEqual(self.ask()[0], 200)

    def test_an_answer_without_a_length_is_complete_only_if_its_end_is_announced(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        port = Upstream(self, answer_without_length, tls=context).port
        words = ("--upstream", f"https://127.0.0.1:{port}", "--upstream-ca-file", self.authority.file)
        sidecar = self.enterContext(Sidecar(args=words))
        versions = ("--http1.0", "--http1.1", "--http2-prior-knowledge")
        for version in versions:
            for path, complete in (("announced", True), ("sized", True), ("cut", False)):
                with self.subTest(f"{version} {path}"):
                    url = f"http://127.0.0.1:{sidecar.port}/{path}"
                    done = run("curl", "--silent", "--max-time", "30", version, *CLIENT, url)
                    self.assertEqual(done.returncode == 0, complete, done)
                    if complete:
                        self.assertEqual(done.stdout, "part")
                    if complete and version == versions[0]:
                        self.assertNotIn("upstream.end_unannounced", sidecar.errors())
        for outcome, paths in (("answered", 2), ("cut_short", 1)):
            metric = f'headgate_proxy_requests_total{{outcome="{outcome}"}}'
            until(lambda: sidecar.metric(metric) == paths * len(versions), 10, metric)
        self.assertIn("upstream.end_unannounced", sidecar.errors())

    def test_the_name_may_differ_from_the_host(self):
        self.certificate, self.key = self.authority.sign("service", "DNS:service.example")
        self.start("https", "--upstream-ca-file", self.authority.file, "--upstream-tls-name", "service.example")
        self.assertEqual(self.ask()[0], 200)

    def test_http2_needs_an_upstream_that_agrees(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        port = Upstream(self, echo_fields, tls=context).port
        for scheme, status in (("https", 200), ("h2", 502)):
            words = ("--upstream", f"{scheme}://127.0.0.1:{port}", "--upstream-ca-file", self.authority.file)
            with Sidecar(args=words) as self.sidecar:
                self.assertEqual(self.ask()[0], status)


class BothSides(Certificates):
    def test_large_bodies_are_exact_and_do_not_gather_in_memory(self):
        nginx = Nginx(self, tls=(self.certificate, self.key))
        with open(nginx.path("big"), "wb") as file:
            file.write(os.urandom(30 * MIB))
        pair = ("--tls-certificate-file", self.certificate, "--tls-key-file", self.key)
        for scheme in ("https", "h2"):
            port = free_port()
            upstream = ("--upstream", f"{scheme}://127.0.0.1:{nginx.port}", "--upstream-ca-file", self.authority.file)
            sidecar = self.enterContext(Sidecar(args=(*upstream, "--listen", f"tls:127.0.0.1:{port}", *pair)))
            url = f"https://localhost:{port}"
            self.curl(*CLIENT, f"{url}/small")
            before = peak_memory(sidecar.process)
            for version in ("--http1.1", "--http2"):
                with self.subTest(f"{scheme} {version}"):
                    down = os.path.join(self.folder, "down")
                    self.curl(version, *CLIENT, "--output", down, f"{url}/big")
                    self.assertEqual(sha256(down), sha256(nginx.path("big")))
                    name = f"put/{scheme}{version}"
                    self.curl(version, *CLIENT, "--upload-file", nginx.path("big"), f"{url}/{name}")
                    self.assertEqual(sha256(nginx.path(name)), sha256(nginx.path("big")))
            self.assertLess(peak_memory(sidecar.process) - before, 6 * MIB)


class Refusals(Certificates):
    def test_flags_that_do_not_fit(self):
        base = (BINARY, "sidecar", "--capacity", "1", "--upstream", "http://127.0.0.1:9")
        pair = ("--tls-certificate-file", self.certificate, "--tls-key-file", self.key)
        for words, said in (
            (("--listen", "tls:127.0.0.1:0"), "needs a certificate"),
            (pair, "no address speaks TLS"),
            (("--upstream-ca-file", self.authority.file), "https:// or h2://"),
            (("--listen", "tls:127.0.0.1:0", *pair, "--client-from-certificate"), "needs --tls-client-ca-file"),
            (("--listen", "tls:127.0.0.1:0", *pair[:3], self.certificate), "cannot be used"),
        ):
            with self.subTest(words):
                done = run(*base, *words, "--admin-listen", "none")
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
