"""The real nginx, Caddy and HAProxy with the changes of docs/guides/behind-your-proxy.md by which requests
pass while Headgate is unreachable."""

import http.client
import http.server
import os
import re
import signal
import threading
import unittest

from harness import INTEGRATION, until
from proxies import Proxy, get

GUIDE = os.path.abspath(os.path.join(INTEGRATION, "../../docs/guides/behind-your-proxy.md"))


class FailOpen(unittest.TestCase):
    # A shorter time, so that the test does not wait.
    LIMITS = {"nginx": "proxy_read_timeout", "caddy": "response_header_timeout", "haproxy": "timeout processing"}

    def blocks(self, name):
        with open(GUIDE, encoding="utf-8") as file:
            section = re.search(r"^## When Headgate cannot be reached$(.*?)^## ", file.read(), re.S | re.M)[1]
        return re.findall(rf"```{name}\n(.*?)```", section, re.S)

    def changed(self, name, text):
        def put_before(found, lines):
            self.assertEqual(text.count(found), 1, found)
            return text.replace(found, lines + found)

        if name == "nginx" and "auth_request" in text:
            lines, location = self.blocks(name)
            text = put_before("      proxy_read_timeout", lines)
            text = put_before("    location @refused", location + "\n")
        elif name == "caddy" and "handle_response" in text:
            variable, handler = self.blocks(name)
            text = put_before("\t\treverse_proxy 127.0.0.1:9000", variable)
            text = put_before("}\n\n# The application", handler)
        elif name == "haproxy" and "filter spoe" in text:
            (line,) = self.blocks(name)
            self.assertEqual(text.count(line), 1)
            text = text.replace(line, "")
        return text.replace(f"{self.LIMITS[name]} 10s", f"{self.LIMITS[name]} 1s")

    def start(self, name, change=lambda text: text):
        return Proxy(self, name, change=lambda text: change(self.changed(name, text)))

    def test_requests_are_limited_while_headgate_answers(self):
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = self.start(name)
                self.assertEqual([get(proxy.port)[0] for _ in range(12)], 10 * [200] + 2 * [429])

    def test_requests_pass_while_headgate_is_away(self):
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = self.start(name)
                self.assertEqual(get(proxy.port)[0], 200)
                proxy.headgate.stop(signal.SIGKILL)
                for _ in range(12):
                    self.assertEqual(get(proxy.port)[::2], (200, "hello\n"))

    def test_requests_pass_while_headgate_does_not_answer(self):
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = self.start(name)
                self.assertEqual(get(proxy.port)[0], 200)
                proxy.headgate.pause()
                self.addCleanup(proxy.headgate.resume)
                until(lambda: proxy.headgate_state() == "T", 10, "Headgate has stopped")
                for _ in range(2):
                    began = os.times().elapsed
                    self.assertEqual(get(proxy.port)[::2], (200, "hello\n"))
                    self.assertLess(os.times().elapsed - began, 5)
                proxy.headgate.resume()

    def test_other_refusals_stay_refusals(self):
        mapping = "mappings:\n- descriptors:\n  - entries:\n    - {key: k, header: X-Team}\n"
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = self.start(name, lambda text: re.sub(r"mappings:\n- (.*?)(?=  #|\Z)", mapping, text, flags=re.S))
                self.assertEqual(get(proxy.port)[0], 401)

    def test_no_header_of_a_client_makes_a_check_fail(self):
        large = {
            "host": {"Host": 7000 * "a", "X-Padding": 5000 * "b"},
            "one": {"X-Padding": 14_000 * "b"},
            "many": {f"X-Padding-{i}": 60 * "b" for i in range(80)},
            "more": {f"X-Padding-{i}": "b" for i in range(110)},
            "huge": {f"X-Padding-{i}": 6000 * "b" for i in range(20)},
        }
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = self.start(name)
                self.assertEqual([get(proxy.port)[0] for _ in range(11)], 10 * [200] + [429])
                for what, headers in large.items():
                    try:
                        self.assertNotEqual(get(proxy.port, headers=headers)[0], 200, what)
                    except (OSError, http.client.HTTPException):
                        pass  # the proxy closed the connection before it had read everything
                # HAProxy opened thousands for a message that does not fit into a frame.
                self.assertLess(proxy.headgate.metric('headgate_sessions_total{protocol="spoe"}'), 20)

    def test_a_request_that_the_application_breaks_off_is_sent_once(self):
        class BreaksOff(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                seen.append(self.path)
                self.close_connection = True

            def log_message(self, *_):
                pass

        application = self.enterContext(http.server.ThreadingHTTPServer(("127.0.0.1", 0), BreaksOff))
        threading.Thread(target=application.serve_forever).start()
        self.addCleanup(application.shutdown)
        seen = []

        def other_application(text):
            return text.replace("reverse_proxy 127.0.0.1:9000", f"reverse_proxy 127.0.0.1:{application.server_port}").replace(
                "reverse_proxy @unchecked 127.0.0.1:9000", f"reverse_proxy @unchecked 127.0.0.1:{application.server_port}"
            )

        proxy = self.start("caddy", other_application)
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
        connection.request("POST", "/orders", body=b"one")
        self.assertEqual(connection.getresponse().status, 502)
        connection.close()
        self.assertEqual(seen, ["/orders"])


if __name__ == "__main__":
    unittest.main()
