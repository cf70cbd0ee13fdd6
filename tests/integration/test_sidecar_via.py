"""Via between sidecars: the name of each in the requests that it passes on, requests that go in
circles, and answers."""

import unittest

from harness import Sidecar, free_port
from upstreams import Upstream

CLIENT = {"X-Client-Id": "ann"}


def answer(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nVia: 1.1 cache\r\nContent-Length: 0\r\n\r\n")
    return True


class Via(unittest.TestCase):
    def chain(self, *names):
        """Sidecars with these names, each in front of the next one, and the last one in front of an
        upstream. Returns the first one."""
        self.upstream = Upstream(self, answer)
        port = self.upstream.port
        for name in reversed(names):
            args = ("--via", name) if name else ()
            first = self.enterContext(Sidecar(port, args=args))
            port = first.port
        return first

    def circle(self, *names, capacity=1_000_000):
        """As chain, but the last one leads back to the first one."""
        port = first_port = free_port()
        for name in reversed(names[1:]):
            port = self.enterContext(Sidecar(port, args=("--via", name))).port
        listen = ("--listen", f"127.0.0.1:{first_port}")
        return self.enterContext(
            Sidecar(port, args=(*listen, "--via", names[0], "--cycle", "1h"), capacity=capacity)
        )

    def via_of(self, first, **fields):
        """Asks, and returns the Via that arrives at the upstream; None if there is none."""
        status, given, text = first.request("GET", "/", headers={**CLIENT, **fields})
        self.assertEqual(status, 200, text)
        # A gateway need not name itself in answers (RFC 9110, 7.6.3).
        self.assertEqual(given["via"], "1.1 cache")
        lines = [line for line in self.upstream.heads[-1].split("\r\n") if line.lower().startswith("via:")]
        self.assertLessEqual(len(lines), 1)
        return lines[0].partition(": ")[2] if lines else None

    def test_two_names(self):
        first = self.chain("edge-1", "inner.example")
        self.assertEqual(self.via_of(first), "1.1 edge-1, 1.1 inner.example")
        self.assertEqual(self.via_of(first, Via="1.0 fred (a, b)"), "1.0 fred (a, b), 1.1 edge-1, 1.1 inner.example")

    def test_one_name(self):
        first = self.chain(None, None)
        self.assertEqual(self.via_of(first), "1.1 headgate, 1.1 headgate")
        six = ", ".join(["1.1 headgate"] * 6)
        self.assertEqual(self.via_of(first, Via=six), f"{six}, 1.1 headgate, 1.1 headgate")
        # Seven entries, and one of the first sidecar: the second sidecar counts eight, which is a loop.
        status, _, text = first.request("GET", "/", headers={**CLIENT, "Via": f"{six}, 1.1 headgate"})
        self.assertEqual(status, 508, text)

    def test_none(self):
        first = self.chain("none", "none")
        self.assertIsNone(self.via_of(first))
        many = ", ".join(["1.1 headgate", "1.1 none"] * 10)
        self.assertEqual(self.via_of(first, Via=many), many)
        first = self.chain("none", "inner")
        self.assertEqual(self.via_of(first, Via="1.0 a"), "1.0 a, 1.1 inner")

    def test_the_name_in_proxy_status(self):
        for name, written in (("edge-1", "edge-1"), ("1edge", '"1edge"'), ("none", "headgate"), ("headgate", "headgate")):
            with self.subTest(name=name):
                sidecar = self.enterContext(Sidecar(free_port(), args=("--via", name)))
                status, fields, _ = sidecar.request("GET", "/", headers=CLIENT)
                self.assertEqual((status, fields["proxy-status"]), (502, f"{written}; error=connection_refused"))
        status, fields, _ = self.circle("edge-1").request("GET", "/", headers=CLIENT)
        self.assertEqual((status, fields["proxy-status"]), (508, "edge-1; error=proxy_loop_detected"))

    def test_names_of_others_do_not_count(self):
        first = self.chain("edge-1")
        many = ", ".join(["1.1 headgate"] * 20)
        self.assertEqual(self.via_of(first, Via=many), f"{many}, 1.1 edge-1")

    def test_a_request_in_a_circle_is_found_by_the_name(self):
        for names in (("edge-1",), ("edge-1", "inner"), ("same", "same")):
            with self.subTest(names=names):
                first = self.circle(*names)
                status, _, text = first.request("GET", "/", headers=CLIENT)
                self.assertEqual(status, 508, text)
                self.assertIn("goes in circles", text)

    def test_without_names_the_share_of_the_client_ends_a_circle(self):
        first = self.circle("none", capacity=20)
        status, _, text = first.request("GET", "/", headers=CLIENT)
        self.assertEqual(status, 429, text)
        self.assertIn("used its share", text)
        self.assertEqual(first.metric('headgate_share_requests_total{client="ann",outcome="allowed"}'), 20)


if __name__ == "__main__":
    unittest.main()
