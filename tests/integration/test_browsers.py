"""Pages in Chromium call a service of another origin through the sidecar, and through the real nginx, Caddy and HAProxy
with the lines of docs/guides/browsers.md."""

import http.client
import http.server
import json
import os
import queue
import re
import threading
import unittest

from browser import open_page
from harness import INTEGRATION, Sidecar
from proxies import Proxy

GUIDE = os.path.abspath(os.path.join(INTEGRATION, "../../docs/guides/browsers.md"))


class Server:
    """An HTTP server. `answer` gets a handler whose body has been read."""

    def __init__(self, test, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except ConnectionError:  # the browser was killed
                    self.close_connection = True

            def reply(self, status, fields=(), body=b""):
                self.send_response(status)
                for name, value in fields:
                    self.send_header(name, value)
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body)

            def answer(self):
                self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer(self)

            do_GET = do_POST = do_OPTIONS = answer

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Service(Server):
    """It lets every page call it, and remembers no preflight."""

    def __init__(self, test):
        self.methods = []
        super().__init__(test, self.answer)

    def answer(self, handler):
        self.methods.append(handler.command)
        fields = [("Access-Control-Allow-Origin", handler.headers.get("Origin") or "*"), ("Access-Control-Allow-Credentials", "true")]
        if handler.command == "OPTIONS":
            fields += [("Access-Control-Allow-Headers", handler.headers.get("Access-Control-Request-Headers") or "")]
            fields += [("Access-Control-Max-Age", "0"), ("Set-Cookie", "sid=1")]
            return handler.reply(200, fields, b"not for pages")
        return handler.reply(200, fields, b"done")


class Page(Server):
    """It makes the calls that are set, and says what it has seen."""

    def __init__(self, test):
        self.test = test
        self.calls = {}
        self.found = queue.Queue()
        super().__init__(test, self.answer)
        self.origin = f"http://127.0.0.1:{self.port}"

    def answer(self, handler):
        if handler.path == "/found":
            self.found.put(json.loads(handler.body))
            return handler.reply(200)
        with open(os.path.join(INTEGRATION, "browsers_page.html"), encoding="utf-8") as file:
            page = file.read().replace("CALLS", json.dumps(self.calls))
        return handler.reply(200, [("Content-Type", "text/html; charset=utf-8")], page.encode())

    def see(self, host="127.0.0.1", query=""):
        open_page(self.test, f"http://{host}:{self.port}/{query}")
        return self.found.get(timeout=60)


def call(port, field="X-Client-Id", credentials=False, attempts=2):
    return {"url": f"http://127.0.0.1:{port}/", "field": field, "credentials": credentials, "attempts": attempts}


PASSED = {"status": 200, "retryAfter": None, "rateLimit": None}


class BehindTheSidecar(unittest.TestCase):
    """A client has one request in a cycle."""

    def setUp(self):
        self.service = Service(self)
        self.page = Page(self)

    def start(self, *args):
        sidecar = self.enterContext(Sidecar(self.service.port, capacity=1, args=("--cycle", "1h", *args)))
        return sidecar

    def refusal(self, seen):
        self.assertEqual(seen[0], PASSED)
        self.assertEqual((seen[1]["status"], seen[1]["rateLimit"].split(";")[0]), (429, '"fair-share"'))
        self.assertGreater(int(seen[1]["retryAfter"]), 0)

    def test_a_page_sees_what_the_settings_allow(self):
        listed = ("--cors-origin", "https://app.example.com", "--cors-origin", self.page.origin)
        sidecars = {
            "silent": self.start(),
            "listed": self.start(*listed),
            "credentials": self.start(*listed),
            "any": self.start("--cors-origin", "*"),
            "any credentials": self.start("--cors-origin", "*"),
            "other": self.start("--cors-origin", "https://app.example.com"),
        }
        self.page.calls = {name: call(sidecar.port, credentials="credentials" in name) for name, sidecar in sidecars.items()}
        seen = self.page.see()
        for name in ("listed", "credentials", "any"):
            with self.subTest(name):
                self.refusal(seen[name])
        for name in ("silent", "any credentials", "other"):
            with self.subTest(name):
                self.assertEqual(seen[name], [PASSED, "blocked"])
        self.assertEqual(self.service.methods.count("POST"), len(sidecars))
        for name, sidecar in sidecars.items():
            self.assertEqual(sidecar.metric('headgate_proxy_preflights_total{result="passed"}'), 2, name)

    def test_pages_of_other_origins_see_nothing(self):
        for host, query in (("localhost", ""), ("127.0.0.1", "?frame")):
            with self.subTest(host + query):
                sidecars = {"listed": self.start("--cors-origin", self.page.origin), "any": self.start("--cors-origin", "*")}
                self.page.calls = {name: call(sidecar.port) for name, sidecar in sidecars.items()}
                if query:
                    # The first calls are those of the page itself, so the frame gets refusals only.
                    seen = self.page.see(host, query)
                    self.assertEqual(seen["listed"], ["blocked", "blocked"])
                    self.assertEqual([each["status"] for each in seen["any"]], [429, 429])
                else:
                    seen = self.page.see(host, query)
                    self.assertEqual(seen["listed"], [PASSED, "blocked"])
                    self.refusal(seen["any"])

    def test_the_content_of_an_answer_to_a_preflight_stays_in_the_sidecar(self):
        sidecar = self.start()
        connection = http.client.HTTPConnection("127.0.0.1", sidecar.port, timeout=10)
        for _ in range(2):  # on one connection
            headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
            connection.request("OPTIONS", "/", headers=headers)
            response = connection.getresponse()
            self.assertEqual((response.status, response.read()), (200, b""))
            self.assertEqual(response.getheader("Access-Control-Allow-Origin"), "https://a.example")
            self.assertIsNone(response.getheader("Set-Cookie"))
        connection.close()

    def test_what_only_looks_like_a_preflight_is_counted(self):
        sidecar = self.start()
        question = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
        lines = [
            {"method": "OPTIONS", "body": b"a=b"},
            {"method": "OPTIONS", "headers": {"Transfer-Encoding": "chunked"}, "body": b"3\r\na=b\r\n0\r\n\r\n"},
            {"method": "OPTIONS", "headers": {"X-HTTP-Method-Override": "POST"}},
            {"method": "OPTIONS", "headers": {"X_HTTP_Method_Override": "POST"}},
            {"method": "OPTIONS", "headers": {"Cookie": "sid=1"}},
            {"method": "OPTIONS", "headers": {"Authorization": "Bearer k1"}},
            {"method": "OPTIONS", "headers": {"origin": "https://b.example"}},
            {"method": "OPTIONS", "headers": {"access-control-request-method": "PUT"}},
            {"method": "options"},
            {"method": "POST"},
        ]
        for line in lines:
            with self.subTest(line):
                connection = http.client.HTTPConnection("127.0.0.1", sidecar.port, timeout=10)
                connection.putrequest(line["method"], "/", skip_accept_encoding=True)
                body = line.get("body", b"")
                for name, value in (*question.items(), *line.get("headers", {}).items()):
                    connection.putheader(name, value)
                if body and "headers" not in line:
                    connection.putheader("Content-Length", len(body))
                connection.endheaders(body)
                self.assertEqual(connection.getresponse().status, 429)
                connection.close()
        self.assertEqual(self.service.methods, [])


class BehindAProxy(unittest.TestCase):
    """A key has one request a minute."""

    def blocks(self, name):
        with open(GUIDE, encoding="utf-8") as file:
            return re.findall(rf"```{name}\n(.*?)```", file.read(), re.S)

    def changed(self, name, text, service, page):
        def put_before(found, lines):
            self.assertEqual(text.count(found), 1, found)
            return text.replace(found, lines + found)

        if "trusted_proxies" in text:
            text = text.replace("{key: remote_address, client_address: true}", "{key: remote_address, header: X-API-Key}")
            return f"preflights: pass\ncors_origins: [{page.origin}]\n{text}"
        if name == "nginx" and "auth_request" in text:
            before, refused = self.blocks("nginx")
            text = put_before("      # Headgate answers 403 instead", before)
            text = put_before("      add_header Retry-After", refused)
            return text.replace("proxy_pass http://127.0.0.1:9000", f"proxy_pass http://127.0.0.1:{service.port}")
        if name == "caddy" and "handle_response" in text:
            return text.replace("reverse_proxy 127.0.0.1:9000", f"reverse_proxy 127.0.0.1:{service.port}")
        if name == "haproxy" and "filter spoe" in text:
            (lines,) = self.blocks("haproxy")
            text = put_before("  default_backend app", lines)
            return re.sub(r"^backend app\n.*\n", f"backend app\n  server app 127.0.0.1:{service.port}\n", text, flags=re.M)
        return text

    def test_a_page_sees_a_refusal_and_its_preflights_pass(self):
        page = Page(self)
        services = {name: Service(self) for name in Proxy.COMMANDS}
        proxies = {}
        for name, service in services.items():
            change = lambda text, name=name, service=service: self.changed(name, text, service, page)
            proxies[name] = Proxy(self, name, "--rule", "remote_address: 1/minute", change=change)
        page.calls = {name: call(proxy.port, "X-API-Key") for name, proxy in proxies.items()}
        refused = {"status": 429, "retryAfter": "60", "rateLimit": '"remote_address";r=0;t=60'}
        seen = page.see()
        for name, service in services.items():
            with self.subTest(name):
                self.assertEqual(seen[name], [PASSED, refused])
                self.assertEqual(service.methods, ["OPTIONS", "POST", "OPTIONS"])
                self.assertEqual(proxies[name].outcomes("preflight"), 2)


if __name__ == "__main__":
    unittest.main()
