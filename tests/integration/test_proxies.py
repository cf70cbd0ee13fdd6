"""The real nginx, Caddy and HAProxy ask Headgate about each request, with the configurations in
examples/. Traefik and Envoy cannot run here; their documented requests are sent instead."""

import http.client
import os
import re
import signal
import socket
import tempfile
import threading
import unittest

from harness import BINARY, Headgate, RedisServer, free_port, run, until
from proxies import EXAMPLES, PER_MINUTE, Proxy, get

# Headers that a client may send to be counted as somebody else, or not at all.
FORGERIES = (
    {"X-Forwarded-For": "198.51.100.7"},
    {"X-Forwarded-For": "198.51.100.8, 198.51.100.9"},
    {"X-FORWARDED-FOR": "unknown"},
    {"X_Forwarded_For": "198.51.100.10"},
    {"Forwarded": "for=198.51.100.11"},
    {"X-Real-IP": "198.51.100.12"},
    {"X-Original-URI": "/free", "X-Original-Method": "OPTIONS"},
    {"X-Forwarded-Uri": "/free", "X-Forwarded-Method": "OPTIONS", "X-Forwarded-Host": "free"},
    {"Connection": "X-Forwarded-For, X-Forwarded-Uri, X-Original-URI, close"},
    {"X-Request-Id": "always-the-same"},
)


class EveryProxy(unittest.TestCase):
    def test_no_header_of_a_client_changes_its_key(self):
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = Proxy(self, name)
                statuses = [get(proxy.port, "/", headers)[0] for headers in FORGERIES]
                statuses += [get(proxy.port, "/", headers)[0] for headers in FORGERIES]
                self.assertEqual(statuses.count(200), 10, statuses)
                self.assertEqual(statuses[10:], 10 * [429])

    def test_the_fields_of_the_limit_reach_the_client(self):
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = Proxy(self, name)
                status, fields, body = get(proxy.port)
                self.assertEqual((status, body), (200, "hello\n"))
                self.assertEqual(fields["ratelimit"], '"remote_address";r=9;t=6')
                self.assertEqual(fields["ratelimit-policy"], '"remote_address";q=10;w=60')
                self.assertNotIn("retry-after", fields)

    def test_nothing_passes_while_headgate_is_away(self):
        for name, status in (("nginx", 500), ("caddy", 502), ("haproxy", 503)):
            with self.subTest(name):
                proxy = Proxy(self, name)
                self.assertEqual(get(proxy.port)[0], 200)
                proxy.headgate.stop(signal.SIGKILL)
                self.assertEqual({get(proxy.port)[0] for _ in range(5)}, {status})

    def test_nothing_waits_for_a_headgate_that_does_not_answer(self):
        limits = {
            "nginx": (500, "proxy_read_timeout 10s"),
            "caddy": (504, "response_header_timeout 10s"),
            "haproxy": (503, "timeout processing 500ms"),
        }
        for name, (status, limit) in limits.items():
            with self.subTest(name):
                found = []

                def shorter(text, limit=limit, found=found):
                    found.append(limit in text)
                    return text.replace(limit, limit.replace("10s", "1s"))

                proxy = Proxy(self, name, change=shorter)
                self.assertIn(True, found, "the example has the limit")
                self.assertEqual(get(proxy.port)[0], 200)
                proxy.headgate.pause()
                self.addCleanup(proxy.headgate.resume)
                until(lambda: proxy.headgate_state() == "T", 10, "Headgate has stopped")
                began = os.times().elapsed
                self.assertEqual(get(proxy.port)[0], status)
                self.assertLess(os.times().elapsed - began, 5)
                proxy.headgate.resume()

    def test_other_outcomes_reach_the_client(self):
        mapping = "mappings:\n- refuse:\n  - {header: X-Team, values: [red]}\n  descriptors:\n  - entries:\n    - {key: k, header: X-Team}\n"
        twice = http.client.HTTPMessage()
        for _ in range(2):
            twice["X-Team"] = "blue"
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = Proxy(self, name, change=lambda text: re.sub(r"mappings:\n- (.*?)(?=  #|\Z)", mapping, text, flags=re.S))
                self.assertEqual(get(proxy.port)[0], 401)
                self.assertEqual(get(proxy.port, headers={"X-Team": "red"})[0], 403)
                self.assertEqual(get(proxy.port, headers={"X-Team": "blue"})[0], 200)
                self.assertEqual(get(proxy.port, headers=twice)[0], 400)

    def test_a_refusal_without_a_limit_has_no_fields_of_one(self):
        """Caddy passes on the whole answer; also fields of the client's own would be wrong."""
        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = Proxy(self, name, change=lambda text: text.replace("client_address: true", "header: X-Team"))
                status, fields, _ = get(proxy.port, headers={"RateLimit": "forged", "RateLimit-Policy": "forged"})
                self.assertEqual(status, 401)
                self.assertFalse([field for field in fields if "ratelimit" in field], fields)

    def test_a_store_that_is_away_is_unavailable_with_a_time(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        rules = os.path.join(folder, "rules.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(SharedStore.RULES.replace("SHARING", "exact").replace("api_key", "remote_address"))

        def wait_longer(text):
            return text.replace("timeout processing 500ms", "timeout processing 10s")

        for name in Proxy.COMMANDS:
            with self.subTest(name), RedisServer() as redis:
                store = ("--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "1s")
                proxy = Proxy(self, name, "--rules", rules, *store, change=wait_longer)
                self.assertEqual(get(proxy.port)[0], 200)
                redis.kill()
                status, fields, _ = get(proxy.port)
                self.assertEqual((status, fields["retry-after"]), (503, "1"))


class Nginx(unittest.TestCase):
    def test_a_request_with_more_fields_than_headgate_reads_is_invalid(self):
        """nginx would make 500 of 431."""
        proxy = Proxy(self, "nginx")
        many = {f"X-{number}": "x" for number in range(120)}
        status, fields, _ = get(proxy.port, headers=many)
        self.assertEqual(status, 400)
        self.assertEqual(proxy.outcomes("invalid"), 1)
        self.assertEqual(get(proxy.port, headers={f"X-{number}": "x" for number in range(80)})[0], 200)

    def test_a_request_that_is_redirected_internally_counts_once(self):
        def serve_files(text):
            return text.replace("proxy_pass http://127.0.0.1:9000;", "root site;", 1)

        proxy = Proxy(self, "nginx", change=serve_files)
        os.mkdir(os.path.join(proxy.folder, "site"))
        with open(os.path.join(proxy.folder, "site/index.html"), "w", encoding="utf-8") as file:
            file.write("index\n")
        status, fields, body = get(proxy.port, "/")
        self.assertEqual((status, body), (200, "index\n"))
        self.assertEqual(fields["ratelimit"], '"remote_address";r=9;t=6')
        self.assertEqual(proxy.headgate.metric("headgate_auth_repeated_total"), 1, "nginx asked twice")
        # Another request has another id.
        self.assertEqual(get(proxy.port, "/")[1]["ratelimit"].partition(";t")[0], '"remote_address";r=8')

    def test_both_questions_about_a_request_go_to_one_of_several_headgates(self):
        second_port = free_port()

        def two_headgates(text):
            text = text.replace("proxy_pass http://127.0.0.1:9000;", "root site;", 1)
            servers = "server 127.0.0.1:8080;"
            return text.replace(servers, f"hash $request_id consistent; {servers} server 127.0.0.1:{second_port};")

        with RedisServer() as redis:
            args = ("--rule", "remote_address: 1000/hour", "--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "1s")
            proxy = Proxy(self, "nginx", *args, change=two_headgates)
            auth = os.path.join(proxy.folder, "auth.yaml")
            second = self.enterContext(Headgate("--listen", f"127.0.0.1:{second_port}", "--auth", auth, *args))
            second.wait_for(rf"listening on 127\.0\.0\.1:({second_port})\n")
            os.mkdir(os.path.join(proxy.folder, "site"))
            with open(os.path.join(proxy.folder, "site/index.html"), "w", encoding="utf-8") as file:
                file.write("index\n")
            for _ in range(40):
                self.assertEqual(get(proxy.port, "/")[0], 200)
            both = (proxy.headgate, second)
            repeated = [server.metric("headgate_auth_repeated_total") for server in both]
            allowed = [server.metric('headgate_auth_requests_total{outcome="allowed"}') for server in both]
        self.assertEqual((sum(repeated), sum(allowed)), (40, 40))
        self.assertNotIn(0, repeated, "nginx asks both")

    def test_connections_are_kept(self):
        proxy = Proxy(self, "nginx", "--rule", "remote_address: 20/minute")
        before = proxy.headgate.metric("headgate_connections_accepted_total")
        statuses = [get(proxy.port)[0] for _ in range(40)]
        self.assertEqual(statuses, 20 * [200] + 20 * [429])
        # Each reading of the metrics is a connection.
        self.assertLessEqual(proxy.headgate.metric("headgate_connections_accepted_total") - before, 3)

    def test_a_body_is_not_awaited(self):
        proxy = Proxy(self, "nginx")
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
        connection.request("POST", "/", body=b"x" * 100_000)
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()


class Queue(unittest.TestCase):
    RULES = "domain: default\ndescriptors:\n- key: remote_address\n  rate_limit: {algorithm: leaky_bucket, queue: true, requests_per_unit: 2, unit: second, burst: 5}\n"

    def rules(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "rules.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.RULES)
        return "--rules", path

    def test_an_answer_is_held_for_its_wait_by_every_proxy(self):
        def wait_longer(text):
            return text.replace("timeout processing 500ms", "timeout processing 10s")

        for name in Proxy.COMMANDS:
            with self.subTest(name):
                proxy = Proxy(self, name, *self.rules(), change=wait_longer)
                began = os.times().elapsed
                self.assertEqual([get(proxy.port)[0] for _ in range(4)], 4 * [200])
                self.assertGreater(os.times().elapsed - began, 1.4, "one request each half second")

    def test_an_answer_may_be_held_for_longer_than_the_request_timeout(self):
        def wait_longer(text):
            return text.replace("timeout processing 500ms", "timeout processing 10s")

        slow = self.RULES.replace("requests_per_unit: 2, unit: second", "requests_per_unit: 1, period: 3s")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rules.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(slow)
            for name in ("nginx", "haproxy"):
                with self.subTest(name):
                    proxy = Proxy(self, name, "--rules", path, "--request-timeout", "1s", change=wait_longer)
                    self.assertEqual([get(proxy.port)[0] for _ in range(2)], 2 * [200])
                    self.assertEqual(proxy.headgate.metric('headgate_connections_closed_total{reason="request_timeout"}'), 0)

    def test_a_client_that_goes_away_frees_its_place(self):
        proxy = Proxy(self, "nginx", *self.rules())
        held = "headgate_auth_held"
        connections = []
        for _ in range(5):
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
            connection.request("GET", "/")
            connections.append(connection)
        until(lambda: proxy.headgate.metric(held) >= 2, 1, "answers are held")
        for connection in connections:
            connection.close()
        until(lambda: proxy.headgate.metric(held) == 0, 0.4, "their places are free before their time has come")


class Haproxy(unittest.TestCase):
    def test_a_request_without_a_path_is_not_unauthorized(self):
        by_path = "- {key: path, path: true}"
        proxy = Proxy(
            self, "haproxy", "--rule", "path: 2/minute", change=lambda text: text.replace("- {key: remote_address, client_address: true}", by_path))

        def ask(line):
            with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
                connection.sendall(f"{line} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n".encode())
                return int(connection.makefile("rb").readline().split()[1])

        root = [ask("GET http://example.com"), ask("GET /"), ask("GET http://example.com/")]
        server = [ask("OPTIONS *"), ask("OPTIONS *"), ask("OPTIONS *")]
        self.assertEqual((root, server), ([200, 200, 429], [200, 200, 429]))


class HaproxyFrames(unittest.TestCase):
    """HAProxy drops an answer that is longer than its frames, and then it answers 503."""

    def rules(self, name):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "rules.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""domain: default
descriptors:
- key: remote_address
  rate_limit: {{algorithm: token_bucket, unit: hour, requests_per_unit: 2, name: "{name}"}}
""")
        return "--rules", path

    def test_a_rule_with_a_long_name_decides_also_with_small_frames(self):
        names = {256: "requests of one client address per minute", 16_380: 1_400 * "é"}
        for frame_bytes, name in names.items():
            with self.subTest(frame_bytes):

                def smaller(text, frame_bytes=frame_bytes):
                    return text.replace("  use-backend", f"  max-frame-size {frame_bytes}\n  use-backend")

                proxy = Proxy(self, "haproxy", *self.rules(name), change=smaller)
                answers = [get(proxy.port) for _ in range(3)]
                self.assertEqual([status for status, _, _ in answers], [200, 200, 429])
                self.assertIn(int(answers[2][1]["retry-after"]), range(1700, 1801))
                self.assertNotIn(name, answers[0][1].get("ratelimit-policy", ""))
                self.assertIn("spoe.fields_left_out", proxy.headgate.errors())

    def with_buffers(self, size):
        def larger(text):
            return text.replace("global\n", f"global\n  tune.bufsize {size}\n", 1)

        return Proxy(self, "haproxy", "--rule", "remote_address: 1000/hour", change=larger)

    def test_a_large_request_gets_a_verdict_if_haproxy_takes_it(self):
        proxy = self.with_buffers(131_072)
        headers = {f"X-Large-{i}": 25_000 * "a" for i in range(4)}
        self.assertEqual([get(proxy.port, "/", headers)[0] for _ in range(3)], 3 * [200])
        self.assertEqual(proxy.outcomes("allowed"), 3)

    def test_requests_that_fit_into_no_frame_do_not_flood_headgate(self):
        proxy = self.with_buffers(4 << 20)
        headers = {f"X-Large-{i}": 500_000 * "a" for i in range(4)}
        self.assertEqual(get(proxy.port)[0], 200)
        accepted = "headgate_connections_accepted_total"
        before = proxy.headgate.metric(accepted)
        large = [threading.Thread(target=get, args=(proxy.port, "/", headers)) for _ in range(4)]
        for thread in large:
            thread.start()
        for thread in large:
            thread.join()
        self.assertLess(proxy.headgate.metric(accepted) - before, 500)
        until(lambda: get(proxy.port)[0] == 200, 5, "other requests are served")
        self.assertIn("spoe.connections_paced", proxy.headgate.errors())

    def test_a_source_that_is_a_text_is_the_client(self):
        def as_text(text):
            return text.replace("src=src", "src=req.hdr(x-client)")

        proxy = Proxy(self, "haproxy", "--rule", "remote_address: 1/hour", change=as_text)
        statuses = [get(proxy.port, "/", {"X-Client": client})[0] for client in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "me")]
        self.assertEqual(statuses, [200, 429, 200, 400])
        self.assertEqual(get(proxy.port)[0], 400, "without the header, HAProxy sends null")

    def test_arguments_of_every_type_are_headers(self):
        def more(text):
            return text.replace("headers=req.hdrs_bin", "headers=req.hdrs_bin x-tls=ssl_fc x-port=dst_port x-to=dst")

        proxy = Proxy(self, "haproxy", change=more)
        self.assertEqual(get(proxy.port)[0], 200)

    def test_the_log_says_why_two_messages_of_an_event_are_refused(self):
        def twice(text):
            found = re.search("spoe-message check.*", text, re.DOTALL)
            if found is None:
                return text
            another = found[0].replace("spoe-message check", "spoe-message again", 1)
            return text.replace("messages check", "messages check again") + "\n" + another

        proxy = Proxy(self, "haproxy", change=twice)
        self.assertEqual(get(proxy.port)[0], 503)
        self.assertIn("spoe.connection_refused", proxy.headgate.errors())


class DocumentedForms(unittest.TestCase):
    """Requests as Traefik and Envoy send them. Neither can be installed from Debian."""

    def start(self, name, *rules):
        args = ("--auth", os.path.join(EXAMPLES, name, "auth.yaml"))
        return self.enterContext(Headgate(*args, *(rules or PER_MINUTE)))

    def test_traefik(self):
        server = self.start("traefik")
        headers = {
            "X-Forwarded-Method": "POST",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "app.example.com",
            "X-Forwarded-Uri": "/orders?id=1",
            "X-Forwarded-For": "203.0.113.5",
        }
        status, fields, body = get(server.port, "/auth", headers)
        self.assertEqual((status, body), (200, ""))
        self.assertEqual(fields["ratelimit"], '"remote_address";r=9;t=6')
        for _ in range(9):
            get(server.port, "/auth", headers)
        status, fields, body = get(server.port, "/auth", headers)
        self.assertEqual((status, fields["content-type"]), (429, "application/problem+json"))
        self.assertEqual(fields["retry-after"], "6")
        self.assertEqual(get(server.port, "/auth", {**headers, "X-Forwarded-For": "203.0.113.6"})[0], 200)

    def test_envoy(self):
        server = self.start("envoy")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        statuses = []
        for _ in range(12):
            # The client's method, with a length of zero, and the client's host.
            connection.putrequest("POST", "/auth/orders?id=1", skip_host=True)
            for name, value in (("Host", "app.example.com"), ("Content-Length", "0"), ("x-forwarded-for", "203.0.113.5")):
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
        self.assertEqual(statuses, 10 * [200] + 2 * [429])

    def test_a_proxy_in_front_of_traefik(self):
        """With trustForwardHeader: true, Traefik adds its peer, the other proxy, to X-Forwarded-For."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        auth = os.path.join(folder, "auth.yaml")
        with open(os.path.join(EXAMPLES, "traefik", "auth.yaml"), encoding="utf-8") as source:
            text = source.read().replace("trusted_proxies: [127.0.0.1]", "trusted_proxies: [127.0.0.1, 10.9.9.9]")
        with open(auth, "w", encoding="utf-8") as file:
            file.write(text)
        server = self.enterContext(Headgate("--auth", auth, "--rule", "remote_address: 1/minute"))
        clients = ("203.0.113.5", "203.0.113.6")
        ask = lambda client: get(server.port, "/auth", {"X-Forwarded-Uri": "/", "X-Forwarded-For": f"{client}, 10.9.9.9"})[0]
        self.assertEqual([ask(client) for client in clients * 2], [200, 200, 429, 429])

    def test_envoy_never_gets_5xx_which_may_pass_there(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        rules = os.path.join(folder, "rules.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(SharedStore.RULES.replace("SHARING", "exact").replace("api_key", "remote_address"))
        redis = self.enterContext(RedisServer())
        server = self.start("envoy", "--rules", rules, "--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "1s")
        headers = {"X-Forwarded-For": "203.0.113.5"}
        self.assertEqual(get(server.port, "/auth/", headers)[0], 200)
        redis.kill()
        status, fields, _ = get(server.port, "/auth/", headers)
        self.assertEqual((status, fields["retry-after"], fields["headgate-outcome"]), (429, "1", "unavailable"))


class Paths(unittest.TestCase):
    def test_a_slash_at_the_end_needs_a_pattern_of_its_own(self):
        def outcomes(mapping, *paths):
            folder = self.enterContext(tempfile.TemporaryDirectory())
            path = os.path.join(folder, "auth.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"trusted_proxies: [127.0.0.1]\noriginal_request: request-line\nmappings:\n- {mapping}\n")
            with Headgate("--auth", path, "--rule", "k: 1/minute") as server:
                return [get(server.port, f"/auth{path}")[1]["headgate-outcome"] for path in paths]

        fixed = "descriptors: [{entries: [{key: k, value: v}]}]"
        self.assertEqual(outcomes(f"{{path: /login, {fixed}}}", "/login", "/login/"), ["allowed", "unmatched"])
        self.assertEqual(outcomes(f"{{path: [/login, /login/], {fixed}}}", "/login", "/login/", "/login//"), ["allowed", "denied", "denied"])
        self.assertEqual(outcomes(f"{{path: /api/*, {fixed}}}", "/api/a", "/api/", "/api"), ["allowed", "denied", "unmatched"])
        self.assertEqual(outcomes(f"{{path: [/api, /api/*], {fixed}}}", "/api", "/api/"), ["allowed", "denied"])
        keyed = "descriptors: [{entries: [{key: k, ATTRIBUTE}]}]"
        self.assertEqual(outcomes(f"{{{keyed.replace('ATTRIBUTE', 'path: true')}}}", "/login", "/login/"), 2 * ["allowed"])
        self.assertEqual(outcomes(f"{{{keyed.replace('ATTRIBUTE', 'path_prefix: 1')}}}", "/login", "/login/"), ["allowed", "denied"])


class OneHeader(unittest.TestCase):
    def test_auth_header_limits_by_the_value_of_the_header(self):
        with Headgate("--auth-header", "X-API-Key", "--rule", "api_key: 2/minute") as server:
            self.assertEqual(get(server.port, "/auth/x")[0], 401)
            answers = [get(server.port, "/auth/x?y", {"X-API-Key": "k1"}) for _ in range(3)]
            self.assertEqual([answer[0] for answer in answers], [200, 200, 429])
            self.assertEqual(get(server.port, "/auth", {"X-API-Key": "k2"}, method="DELETE")[0], 200)
        with Headgate("--auth-header", "X-API-Key", "--rule", "other: 2/minute") as server:
            self.assertEqual(get(server.port, "/auth", {"X-API-Key": "k1"})[0], 403)


class SharedStore(unittest.TestCase):
    RULES = "domain: default\ndescriptors:\n- key: api_key\n  rate_limit: {requests_per_unit: 10, unit: minute, algorithm: token_bucket, sharing: SHARING, on_store_failure: deny}\n"

    def start(self, sharing, redis):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "rules.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.RULES.replace("SHARING", sharing))
        args = ("--auth-header", "X-API-Key", "--rules", path, "--store", f"redis://127.0.0.1:{redis.port}", "--store-timeout", "1s")
        return self.enterContext(Headgate(*args))

    def test_one_limit_holds_over_two_instances(self):
        for sharing in ("exact", "leased"):
            with self.subTest(sharing), RedisServer() as redis:
                servers = [self.start(sharing, redis) for _ in range(2)]
                statuses = [get(servers[i % 2].port, "/auth", {"X-API-Key": "k"})[0] for i in range(30)]
                self.assertLessEqual(statuses.count(200), 10)
                self.assertGreaterEqual(statuses.count(200), 9)

    def test_a_store_that_is_away_is_unavailable(self):
        with RedisServer() as redis:
            server = self.start("exact", redis)
            self.assertEqual(get(server.port, "/auth", {"X-API-Key": "k"})[0], 200)
            redis.kill()
            status, fields, _ = get(server.port, "/auth", {"X-API-Key": "k"})
            self.assertEqual((status, fields["headgate-outcome"], fields["retry-after"]), (503, "unavailable", "1"))


class Fields(unittest.TestCase):
    def test_an_address_can_have_its_own_fields(self):
        port = free_port()
        args = ("--auth-header", "X-API-Key", "--rule", "api_key: 2/minute", "--rate-limit-fields", "github")
        with Headgate(*args, "--listen", f"127.0.0.1:{port}?fields=draft-7") as server:
            fields = get(server.port, "/auth", {"X-API-Key": "k"})[1]
            self.assertEqual(fields["x-ratelimit-used"], "1")
            fields = get(port, "/auth", {"X-API-Key": "k"})[1]
            self.assertEqual(fields["ratelimit"], "limit=2, remaining=0, reset=60")
            self.assertNotIn("x-ratelimit-used", fields)

    def test_a_partition_key_is_the_same_for_the_same_bucket_and_secret(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        keys = []
        for secret in ("one", "one", "two"):
            path = os.path.join(folder, secret)
            with open(path, "w", encoding="utf-8") as file:
                file.write(secret + "\n")
            with Headgate("--auth-header", "X-API-Key", "--rule", "api_key: 9/minute", "--partition-key-secret-file", path) as server:
                pks = [re.search(";pk=(:.{12}:)", get(server.port, "/auth", {"X-API-Key": key})[1]["ratelimit"]).group(1) for key in "aab"]
            self.assertEqual(pks[0], pks[1])
            self.assertNotEqual(pks[0], pks[2])
            keys.append(pks[0])
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[0], keys[2])


class LiveMappings(unittest.TestCase):
    def test_a_change_of_the_mappings_or_of_a_list_is_in_force_within_a_second(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())

        def write(name, text):
            with open(os.path.join(folder, name + ".new"), "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(os.path.join(folder, name + ".new"), os.path.join(folder, name))

        mapping = "trusted_proxies: [127.0.0.1]\nmappings:\n- refuse:\n  - {header: X-Key, values_file: LIST}\n"
        write("auth.yaml", mapping.replace("LIST", "blocked.txt"))
        write("blocked.txt", "# nobody yet\n")
        with Headgate("--auth", os.path.join(folder, "auth.yaml")) as server:
            status = lambda key: get(server.port, "/auth", {"X-Key": key})[0]
            self.assertEqual(status("a"), 200)
            write("blocked.txt", "a\n")
            until(lambda: status("a") == 403, 1, "the list is followed")
            write("other.txt", "b\n")
            write("auth.yaml", mapping.replace("LIST", "other.txt"))
            until(lambda: status("b") == 403, 1, "the mappings are followed")
            self.assertEqual(status("a"), 200)
            write("other.txt", "a\n")
            until(lambda: status("a") == 403, 1, "the new list is followed")
            write("auth.yaml", mapping.replace("LIST", "missing.txt"))
            until(lambda: "mappings.refused" in server.errors(), 2, "the problem is logged")
            self.assertEqual(status("a"), 403, "the mappings in force stay in force")
            write("auth.yaml", mapping.replace("LIST", "blocked.txt").replace("refuse", "exempt"))
            write("blocked.txt", "")
            until(lambda: status("a") == 200, 2, "good mappings are taken up again")

    def test_problems_are_shown_at_the_start(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "auth.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("trusted_proxies: [10.0.0.1/8]\nmappings:\n- descriptor: []\n")
        done = run(BINARY, "serve", "--auth", path, "--listen", "127.0.0.1:0", "--admin-listen", "none")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{path}:1:19: '10.0.0.1/8' is not a network", done.stderr)
        self.assertIn(f"{path}:3:3: a mapping has no word 'descriptor'", done.stderr)
        self.assertIn("did you mean 'descriptors'?", done.stderr)


if __name__ == "__main__":
    unittest.main()
