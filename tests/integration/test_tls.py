"""TLS on the addresses of the server: real certificates of openssl, and the clients of Python, curl
and redis-cli."""

import os
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from harness import BINARY, Headgate, require, run, until
from resp import Replies, encode


class Authority:
    """A certificate authority whose files are in a folder."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.file = os.path.join(folder, f"{name}.pem")
        self._key = os.path.join(folder, f"{name}.key")
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl("req", "-x509", *new_key, "-subj", f"/CN={name}", "-days", "2", "-keyout", self._key, "-out", self.file)

    def sign(self, name, *alternatives, common_name=None, days=2):
        """The files of a certificate with these subject alternative names, and of its key."""
        certificate, key = (os.path.join(self.folder, f"{name}.{kind}") for kind in ("crt", "key"))
        request, extensions = certificate + ".csr", certificate + ".ext"
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        subject = ("-utf8", "-subj", f"/CN={common_name or name}")
        openssl("req", "-new", *new_key, *subject, "-keyout", key + ".new", "-out", request)
        with open(extensions, "w", encoding="utf-8") as file:
            file.write(f"subjectAltName={','.join(alternatives)}\n" if alternatives else "")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", str(days),
                "-extfile", extensions, "-out", certificate + ".new")
        os.rename(key + ".new", key)
        os.rename(certificate + ".new", certificate)
        return certificate, key


def openssl(*words):
    result = run("openssl", *words)
    if result.returncode != 0:
        raise AssertionError(result.stderr)


class Tls(unittest.TestCase):
    def setUp(self):
        require("openssl", "curl", "redis-cli")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.authority = Authority(self.folder)
        self.certificate, self.key = self.authority.sign("first", "DNS:localhost", "IP:127.0.0.1")

    def serve(self, *more, listen="tls:127.0.0.1:0"):
        server = self.enterContext(
            Headgate("--listen", listen, "--tls-certificate-file", self.certificate, "--tls-key-file", self.key, *more)
        )
        self.tls_port = server.wait_for(r"listening on tls:127\.0\.0\.1:(\d+)\n")
        return server

    def context(self, **client):
        context = ssl.create_default_context(cafile=self.authority.file)
        if client:
            context.load_cert_chain(client["certificate"], client["key"])
        return context

    def connect(self, context, name="localhost", session=None):
        raw = socket.create_connection(("127.0.0.1", self.tls_port), timeout=10)
        connection = context.wrap_socket(raw, server_hostname=name, session=session)
        self.addCleanup(connection.close)
        return connection

    def ping(self, connection):
        connection.sendall(encode("PING"))
        return Replies(connection).next()

    def serial_of(self, context, name="localhost"):
        return self.connect(context, name).getpeercert()["serialNumber"]

    def test_both_protocols_are_served_to_real_clients(self):
        server = self.serve()
        url = f"https://localhost:{self.tls_port}/healthz"
        self.assertEqual(run("curl", "-sS", "--cacert", self.authority.file, url).stdout.strip(), "ok")
        words = ("redis-cli", "--tls", "--cacert", self.authority.file, "-p", str(self.tls_port))
        self.assertEqual(run(*words, "CL.THROTTLE", "user123", "15", "30", "60").stdout.split(), ["0", "16", "15", "-1", "2"])
        # Plain bytes at this address are refused, and the plain address next to it serves on.
        with socket.create_connection(("127.0.0.1", self.tls_port), timeout=10) as plain:
            plain.sendall(b"PING\r\n")
            try:
                self.assertNotIn(b"PONG", plain.recv(100))
            except ConnectionResetError:
                pass
        self.assertEqual(server.request("GET", "/healthz")[0], 200)

    def test_old_versions_are_refused_and_http_2_is_chosen_if_it_is_offered(self):
        self.serve()
        context = self.context()
        for offered, chosen in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), (["h3"], None)):
            context.set_alpn_protocols(offered)
            connection = self.connect(context)
            self.assertEqual(connection.selected_alpn_protocol(), chosen)
        self.assertIn(connection.version(), ("TLSv1.2", "TLSv1.3"))
        for old in ("-tls1", "-tls1_1"):
            result = run("openssl", "s_client", "-connect", f"127.0.0.1:{self.tls_port}", old, "-cipher", "ALL:@SECLEVEL=0", input="")
            self.assertNotEqual(result.returncode, 0, old)

    def test_a_session_is_resumed(self):
        self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            first = self.connect(context)
            self.assertEqual(self.ping(first), "PONG")
            self.assertFalse(first.session_reused)
            second = self.connect(context, session=first.session)
            self.assertEqual(self.ping(second), "PONG")
            self.assertTrue(second.session_reused, version)

    def test_each_name_has_its_certificate(self):
        other_certificate, other_key = self.authority.sign("other", "DNS:*.example.com")
        self.serve("--tls-certificate-file", other_certificate, "--tls-key-file", other_key)
        context = self.context()
        first, other = self.serial_of(context), self.serial_of(context, "api.example.com")
        self.assertNotEqual(first, other)
        with self.assertRaisesRegex(ssl.SSLCertVerificationError, "Hostname mismatch"):
            self.connect(context, "example.org")

    def test_changed_certificates_are_used_and_open_connections_go_on(self):
        server = self.serve()
        context = self.context()
        open_before = self.connect(context)
        self.assertEqual(self.ping(open_before), "PONG")
        before = self.serial_of(context)
        self.authority.sign("first", "DNS:localhost")
        until(lambda: self.serial_of(context) != before, 10, "the new certificate is used")
        self.assertEqual(self.ping(open_before), "PONG")
        loaded = 'headgate_certificate_reloads_total{result="loaded"}'
        self.assertGreaterEqual(server.metric(loaded), 1)
        after = self.serial_of(context)
        with open(self.certificate, "w", encoding="utf-8") as file:
            file.write("no certificate")
        until(lambda: server.metric('headgate_certificate_reloads_total{result="refused"}') >= 1, 10, "the file is refused")
        self.assertEqual(self.serial_of(context), after)
        self.assertRegex(server.errors(), "certificates.refused.*first.crt")

    def test_clients_need_a_certificate_with_a_known_name(self):
        authority = Authority(self.folder, "client-ca")
        good = dict(zip(("certificate", "key"), authority.sign("good", "URI:spiffe://fleet/api", "DNS:api.fleet")))
        unnamed = dict(zip(("certificate", "key"), authority.sign("unnamed", "DNS:other.fleet")))
        foreign = dict(zip(("certificate", "key"), self.authority.sign("foreign", "DNS:api.fleet")))
        server = self.serve("--tls-client-ca-file", authority.file, "--tls-client-name", "spiffe://fleet/api")
        self.assertEqual(self.ping(self.connect(self.context(**good))), "PONG")
        for client in ({}, unnamed, foreign):
            # With TLS 1.3 the client learns of it when it reads.
            with self.assertRaises((ssl.SSLError, ConnectionError, EOFError), msg=client):
                self.ping(self.connect(self.context(**client)))
        failed = 'headgate_connections_closed_total{reason="tls_handshake"}'
        until(lambda: server.metric(failed) == 3, 5, "each is counted")

    def test_the_end_that_comes_with_the_last_request_closes_the_connection(self):
        server = self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            with socket.create_connection(("127.0.0.1", self.tls_port), timeout=10) as raw:
                while True:
                    try:
                        tls.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        raw.sendall(outgoing.read())
                        incoming.write(raw.recv(65536))
                raw.sendall(outgoing.read())
                tls.write(encode("PING"))
                with self.assertRaises(ssl.SSLWantReadError):
                    tls.unwrap()
                # The request and close_notify in one segment.
                raw.sendall(outgoing.read())
                while (data := raw.recv(65536)) != b"":
                    incoming.write(data)
            self.assertEqual(tls.read(100), b"+PONG\r\n")
        until(lambda: server.metric("headgate_connections") == 1, 5, "only the connection that asks is open")

    def test_a_pipe_in_place_of_a_file_stops_nothing(self):
        server = self.serve()
        context = self.context()
        before = self.serial_of(context)
        os.mkfifo(self.certificate + ".pipe")
        os.rename(self.certificate + ".pipe", self.certificate)
        until(lambda: server.metric('headgate_certificate_reloads_total{result="refused"}') >= 1, 10, "the pipe is refused")
        self.authority.sign("first", "DNS:localhost")
        until(lambda: self.serial_of(context) != before, 10, "the file is used again")

    def test_the_command_line_speaks_tls_and_logs_in(self):
        users = os.path.join(self.folder, "users")
        hashed = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        login = os.path.join(self.folder, "login")
        for path, text in ((users, f"ann check {hashed}\n"), (login, "ann:apple\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.serve("--users-file", users, "--rule", "key: 1000000/minute", "--rule", "api_key: 1000000/minute")
        at = ("--server", f"tls:127.0.0.1:{self.tls_port}", "--ca-file", self.authority.file, "--tls-name", "localhost")
        patient = ("--timeout", "30s")  # to verify a password takes long on a busy machine
        asked = run(BINARY, "check", *at, *patient, "key=k")
        self.assertEqual(asked.returncode, 2, asked)
        self.assertIn("401", asked.stderr)
        asked = run(BINARY, "check", *at, *patient, "--credential-file", login, "key=k")
        self.assertEqual((asked.returncode, asked.stderr), (0, ""), asked)
        for command in (("check", "key=k"), ("bench",), ("bench", "--http")):
            for more, reason in (((), "certificate"), ((*at[2:4], "--tls-name", "other.example"), "mismatch")):
                refused = run(BINARY, *command, *at[:2], *more)
                self.assertEqual(refused.returncode, 3, "nobody vouches for this certificate")
                self.assertIn(reason, refused.stderr)
                self.assertTrue(refused.stderr.endswith("hint: name the authority of its certificate with --ca-file, or the name in it with --tls-name\n"), refused.stderr)
        for more in ((), ("--http",)):
            load = run(BINARY, "bench", *at, "--credential-file", login, "--duration", "1s", "--connections", "4", *more)
            self.assertEqual(load.returncode, 0, load)

    def test_a_handshake_that_does_not_end_holds_up_nobody(self):
        server = self.serve("--request-timeout", "1s")
        idle = self.connect(self.context())
        silent = [socket.create_connection(("127.0.0.1", self.tls_port), timeout=20) for _ in range(100)]
        for connection in silent:
            self.addCleanup(connection.close)
        # The beginning of a ClientHello.
        for connection in silent[:50]:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        began = time.monotonic()
        self.assertEqual(self.ping(self.connect(self.context())), "PONG")
        self.assertLess(time.monotonic() - began, 1)
        for connection in silent:
            self.assertEqual(connection.recv(100), b"")
        self.assertEqual(server.metric('headgate_connections_closed_total{reason="request_timeout"}'), 100)
        # After its handshake a connection may be idle, as any other.
        self.assertEqual(self.ping(idle), "PONG")

    def test_a_client_that_changes_its_keys_without_end_is_closed(self):
        self.serve()
        client = ("openssl", "s_client", "-connect", f"127.0.0.1:{self.tls_port}", "-CAfile", self.authority.file, "-tls1_3", "-crlf")
        for changes, is_served in ((10, True), (40, False)):
            with subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
                self.addCleanup(process.kill)
                try:
                    for _ in range(changes):
                        process.stdin.write(b"k\n")  # changes the keys, and says so
                        while (line := process.stderr.readline()) and b"KEYUPDATE" not in line:
                            pass
                    process.stdin.write(b"PING\nquit\n")
                except BrokenPipeError:
                    pass
                # Until the server closes; at the end of its own input, the client would not await the answer.
                said = process.stdout.read()
                self.assertEqual(b"+PONG" in said, is_served)

    def test_wrong_settings_are_named(self):
        missing, pipe, other_kind, locked = (os.path.join(self.folder, name) for name in ("missing.pem", "pipe", "rsa.key", "locked.key"))
        os.mkfifo(pipe)
        for words in (("-out", other_kind), ("-aes128", "-pass", "pass:secret", "-out", locked)):
            made = run("openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", *words)
            self.assertEqual(made.returncode, 0, made.stderr)
        tls = ("--listen", "tls:127.0.0.1:0")
        for words, message in (
            (("--listen", "tls:127.0.0.1:0"), "needs a certificate"),
            (("--tls-certificate-file", self.certificate), "a certificate has no key"),
            ((*tls, "--tls-certificate-file", missing, "--tls-key-file", self.key), "missing.pem' cannot be used"),
            ((*tls, "--tls-certificate-file", self.certificate, "--tls-key-file", self.certificate), "first.crt' cannot be used"),
            ((*tls, "--tls-certificate-file", self.certificate, "--tls-key-file", other_kind), "rsa.key' cannot be used"),
            ((*tls, "--tls-certificate-file", self.certificate, "--tls-key-file", locked), "locked.key' cannot be used: it needs a passphrase"),
            ((*tls, "--tls-certificate-file", self.certificate, "--tls-key-file", pipe), "pipe' cannot be used: it is not a file"),
            ((*tls, "--tls-certificate-file", missing, "--tls-key-file", self.key), "error: --tls-certificate-file: the certificate file"),
            (("--users-file", pipe), "pipe: it is not a file"),
            (("--auth", pipe), "pipe: cannot read: it is not a file"),
            (("--tls-certificate-file", self.certificate, "--tls-key-file", self.key), "no address speaks TLS"),
            (("--tls-client-ca-file", self.authority.file), "only a server with a certificate"),
            (("--tls-certificate-file", self.certificate, "--tls-key-file", self.key, "--tls-client-name", "a"), "nobody vouches"),
        ):
            result = run(BINARY, "serve", "--admin-listen", "none", *words, timeout=20)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
