"""The gate itself, between a client and a server in Python: it applies to a connection each fault that a test
asks for."""

import socket
import socketserver
import struct
import threading
import unittest

from gate import TO_CLIENT, Gate
from harness import until


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while heard := self.request.recv(4096):
                self.request.sendall(heard)
        except OSError:
            pass


class EchoServer(socketserver.ThreadingTCPServer):
    """Echoes what it receives."""

    daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return super().__enter__()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)


class AGate(unittest.TestCase):
    def setUp(self):
        server = self.enterContext(EchoServer(("127.0.0.1", 0), Echo))
        self.gate = self.enterContext(Gate(server.server_address[1]))

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.gate.port), timeout=10)
        self.addCleanup(client.close)
        self.assertEqual(self.echo(client), b"hello")
        return client

    def echo(self, client):
        client.sendall(b"hello")
        return client.recv(4096)

    def test_passes_what_is_sent(self):
        self.connect()
        self.assertEqual((self.gate.accepted, self.gate.open_links), (1, 1))

    def test_a_client_that_goes_away_leaves_no_link(self):
        self.connect().close()
        until(lambda: self.gate.open_links == 0, 10, "the link is gone")

    def test_a_client_that_resets_its_connection_leaves_no_link(self):
        for held in (False, True):
            with self.subTest(held=held):
                client = self.connect()
                if held:
                    self.gate.hold(TO_CLIENT)
                    client.sendall(b"an answer to this is kept")
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                self.gate.reset()
                until(lambda: self.gate.open_links == 0, 10, "the link is gone")
                self.gate.reset()
                self.gate.heal()
                self.connect()
                self.gate.reset()

    def test_a_reset_ends_the_connection_with_a_reset(self):
        client = self.connect()
        self.gate.reset()
        with self.assertRaises(ConnectionResetError):
            client.recv(1)

    def test_a_reset_in_the_middle_of_an_answer(self):
        client = self.connect()
        self.gate.reset(after_bytes=2)
        with self.assertRaises(ConnectionResetError):
            self.assertIn(self.echo(client), (b"", b"he"))
            client.recv(1)

    def test_after_a_half_close_the_client_reads_the_end_and_can_still_write(self):
        client = self.connect()
        self.gate.half_close()
        self.assertEqual(client.recv(1), b"")
        client.sendall(b"more")

    def test_a_cut_refuses_connections_until_healed(self):
        client = self.connect()
        self.gate.cut()
        with self.assertRaises(ConnectionResetError):
            client.recv(1)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.gate.port), timeout=10)
        self.gate.heal()
        self.connect()

    def test_held_data_arrives_late(self):
        client = self.connect()
        self.gate.hold("both")
        client.sendall(b"late")
        client.settimeout(0.1)
        with self.assertRaises(TimeoutError):
            client.recv(4096)
        client.settimeout(10)
        self.gate.heal()
        self.assertEqual(client.recv(4096), b"late")

    def test_one_byte_is_changed_once(self):
        client = self.connect()
        self.gate.corrupt(1)
        self.assertEqual(self.echo(client), bytes([b"h"[0] ^ 0x15]) + b"ello")
        self.assertEqual(self.echo(client), b"hello")


if __name__ == "__main__":
    unittest.main()
