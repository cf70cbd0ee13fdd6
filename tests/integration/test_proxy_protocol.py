"""The real HAProxy names its clients in PROXY headers of both versions, plain and in front of TLS."""

import os
import re
import socket
import ssl
import subprocess
import tempfile
import unittest

from harness import START_SECONDS, Headgate, free_port, log_file, require, until
from resp import Replies, encode
from test_tls import Authority

os.environ["PATH"] += ":/usr/sbin"

CONFIGURATION = """
global
  log stderr format raw local0
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen first
  bind 127.0.0.1:{first}
  server headgate 127.0.0.1:{plain} {check} send-proxy
listen second
  bind 127.0.0.1:{second}
  server headgate 127.0.0.1:{plain} {check} send-proxy-v2 proxy-v2-options crc32c,unique-id
listen tls
  bind 127.0.0.1:{tls}
  server headgate 127.0.0.1:{encrypted} send-proxy-v2
"""


class Haproxy(unittest.TestCase):
    def setUp(self):
        require("haproxy", "openssl")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.authority = Authority(self.folder)
        certificate, key = self.authority.sign("server", "DNS:localhost")
        self.headgate = self.enterContext(
            Headgate(
                *("--tls-certificate-file", certificate, "--tls-key-file", key),
                *("--listen", "127.0.0.1:0?proxy_from=127.0.0.0/8"),
                *("--listen", "tls:127.0.0.1:0?proxy_from=127.0.0.0/8"),
                *("--max-connections", "40", "--max-connections-per-address", "2"),
            )
        )
        self.plain = self.headgate.wait_for(r"listening on 127\.0\.0\.1:(\d+)\n")
        encrypted = self.headgate.wait_for(r"listening on tls:127\.0\.0\.1:(\d+)\n")
        self.first, self.second, self.tls = (free_port() for _ in range(3))
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                CONFIGURATION.format(
                    first=self.first, second=self.second, tls=self.tls, plain=self.plain, encrypted=encrypted,
                    check="check check-send-proxy inter 100ms",
                )
            )
        self.log = self.enterContext(log_file())
        self.process = subprocess.Popen(("haproxy", "-db", "-f", path), stdout=self.log, stderr=self.log)
        self.addCleanup(self.process.wait, timeout=START_SECONDS)
        self.addCleanup(self.process.terminate)
        until(lambda: self.listens(self.tls), START_SECONDS, "HAProxy listens")

    def listens(self, port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def connect(self, port, client):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(client, 0))
        self.addCleanup(connection.close)
        return connection

    def assert_knows(self, connection, client):
        connection.sendall(encode("CLIENT", "INFO"))
        address = re.search(r" addr=(\S+)", Replies(connection).next()).group(1)
        self.assertEqual(address, f"{client}:{connection.getsockname()[1]}")

    def test_both_versions_name_the_client(self):
        for port in (self.first, self.second):
            # HAProxy's checks use up the places of 127.0.0.1.
            for client in ("127.0.0.8", "127.0.0.9"):
                self.assert_knows(self.connect(port, client), client)
        self.assertEqual(self.headgate.metric('headgate_connections_refused_total{reason="proxy_header"}'), 0)

    def test_the_header_comes_before_tls(self):
        context = ssl.create_default_context(cafile=self.authority.file)
        raw = self.connect(self.tls, "127.0.0.9")
        client_port = raw.getsockname()[1]
        connection = context.wrap_socket(raw, server_hostname="localhost")
        self.addCleanup(connection.close)
        self.assertEqual(connection.getsockname()[1], client_port)
        self.assert_knows(connection, "127.0.0.9")

    def test_a_client_behind_a_proxy_has_no_rights_of_a_local_one(self):
        direct = self.connect(self.headgate.port, "127.0.0.6")
        direct.sendall(encode("HG.RESET", "default", "1", "1", "key", "value"))
        self.assertNotIn("NOPERM", str(Replies(direct).next()))
        proxied = self.connect(self.first, "127.0.0.7")
        proxied.sendall(encode("HG.RESET", "default", "1", "1", "key", "value"))
        self.assertIn("NOPERM", str(Replies(proxied).next()))

    def test_each_client_has_places_of_its_own(self):
        # HAProxy's own checks come from 127.0.0.1.
        for i in range(2, 10):
            for _ in range(2):
                self.assert_knows(self.connect(self.first, f"127.0.0.{i}"), f"127.0.0.{i}")
        third = self.connect(self.second, "127.0.0.3")
        third.sendall(encode("PING"))
        self.assertIn("max number of clients", str(Replies(third).next()))

    def test_a_connection_without_a_header_is_closed_and_logged(self):
        connection = self.connect(self.plain, "127.0.0.1")
        connection.sendall(encode("PING"))
        try:
            self.assertEqual(connection.recv(100), b"")
        except ConnectionResetError:
            pass  # as the system reports it
        refused = 'headgate_connections_refused_total{reason="proxy_header"}'
        until(lambda: self.headgate.metric(refused) == 1, 10, "it is counted")
        until(lambda: "proxy_header" in self.headgate.errors(), 10, "it is logged")


if __name__ == "__main__":
    unittest.main()
