"""The HTTP front over real sockets."""

import json
import socket
import time
import unittest

from harness import Headgate, require, run, until, wait


class Check(unittest.TestCase):
    def test_requests_that_arrived_while_the_process_was_stopped_are_answered(self):
        with Headgate("--request-timeout", "1s", "--threads", "1") as server:
            clients = []
            for _ in range(300):  # more than one turn of the event loop reads
                client = self.enterContext(socket.create_connection(("127.0.0.1", server.port), timeout=20))
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
                clients.append(client)
            server.pause()
            for client in clients:
                client.sendall(b"host\r\n\r\n")
            wait(2)
            server.resume()
            self.assertEqual({client.recv(12) for client in clients}, {b"HTTP/1.1 200"})

    def test_ten_of_twenty_pass_and_the_others_get_a_retry_time(self):
        with Headgate("--rule", "api_key: 10/20s") as server:
            statuses, retries = [], []
            for _ in range(20):
                status, fields, answer = server.check(api_key="k1")
                statuses.append(status)
                decision = answer["decisions"][0]
                self.assertEqual(answer["allowed"], status == 200)
                self.assertEqual((decision["limit"], decision["rule"], decision["shadow"]), (10, "api_key", False))
                if status == 429:
                    retries.append((int(fields["retry-after"]), decision["retry_after_ms"]))
            self.assertEqual(statuses, [200] * 10 + [429] * 10)
            for seconds, milliseconds in retries:
                # At ten per 20 s, one request refills every 2 s.
                self.assertTrue(1 <= seconds <= 2 and 0 < milliseconds <= 2000, (seconds, milliseconds))
                self.assertGreaterEqual(seconds * 1000, milliseconds)

    def test_a_client_that_waits_for_the_retry_time_is_admitted(self):
        with Headgate("--rule", "api_key: 5/second burst 1") as server:
            for _ in range(3):
                status, _, answer = server.check(api_key="k1")
                self.assertEqual(status, 200)
                status, fields, answer = server.check(api_key="k1")
                self.assertEqual(status, 429)
                came_back = time.monotonic() + answer["decisions"][0]["retry_after_ms"] / 1000
                until(lambda at=came_back: time.monotonic() >= at, 5, "the retry time has passed")

    def test_the_answers_that_curl_shows(self):
        require("curl")
        with Headgate("--rule", "api_key: 1/hour") as server:
            url = f"http://127.0.0.1:{server.port}/v1/check"
            body = '{"descriptors":[{"entries":[{"key":"api_key","value":"k1"}]}]}'
            command = ["curl", "-s", "-i", url, "-H", "Content-Type: application/json", "-d", body]
            self.assertTrue(run(*command).stdout.startswith("HTTP/1.1 200 "))
            denied = run(*command).stdout
            self.assertTrue(denied.startswith("HTTP/1.1 429 "), denied)
            for field in ("RateLimit: ", "RateLimit-Policy: ", "X-RateLimit-Remaining: 0", "Retry-After: "):
                self.assertIn(field, denied)

    def test_a_thousand_checks_in_one_request(self):
        with Headgate("--rule", "api_key: 10/hour") as server:
            check = {"descriptors": [{"entries": [{"key": "api_key", "value": "k1"}]}]}
            other = {"descriptors": [{"entries": [{"key": "api_key", "value": "k2"}]}]}
            status, _, body = server.request("POST", "/v1/checks", json.dumps({"checks": [check, other] * 500}))
            self.assertEqual(status, 200)
            statuses = [result["status"] for result in json.loads(body)["results"]]
            self.assertEqual(statuses, [200] * 20 + [429] * 980)

    def test_refund_and_reset(self):
        with Headgate("--rule", "user: 5/hour") as server:
            server.check(user="ann", cost=5)
            self.assertEqual(server.check(path="/v1/refund", user="ann", cost=2)[2]["decisions"][0]["remaining"], 2)
            self.assertEqual(server.check(path="/v1/reset", user="ann")[2]["decisions"][0]["remaining"], 5)

    def test_changing_state_needs_the_credential_on_every_path(self):
        with Headgate("--rule", "user: 5/hour", "--credential", "open sesame") as server:
            bearer = {"Authorization": "Bearer open sesame"}
            for method, path in (("GET", "/v1/rules"), ("GET", "/metrics"), ("POST", "/v1/reset")):
                body = '{"descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}' if method == "POST" else None
                self.assertEqual(server.request(method, path, body)[0], 401, path)
                self.assertEqual(server.request(method, path, body, bearer)[0], 200, path)
            self.assertEqual(server.check(user="ann")[0], 200)

    def test_errors_are_problem_documents(self):
        with Headgate() as server:
            for method, path, body, headers, status in (
                ("POST", "/v1/check", "{", {}, 400),
                ("POST", "/v1/check", "{}", {"Content-Type": "text/plain"}, 415),
                ("POST", "/v1/check", "{}", {"Host": "evil.example"}, 421),
                ("GET", "/v1/check", None, {}, 405),
                ("GET", "/nowhere", None, {}, 404),
            ):
                got, fields, text = server.request(method, path, body, headers)
                self.assertEqual(got, status, (path, text))
                self.assertEqual(fields["content-type"], "application/problem+json")
                self.assertEqual(json.loads(text)["status"], status)

    def test_health_and_metrics(self):
        with Headgate("--rule", "user: 1/hour") as server:
            self.assertEqual(server.request("GET", "/healthz")[0], 200)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
            server.check(user="ann")
            server.check(user="ann")
            text = server.request("GET", "/metrics")[2]
            for outcome in ("allowed", "denied"):
                line = next(l for l in text.split("\n") if l.startswith("headgate_decisions_total") and f'"{outcome}"' in l)
                self.assertEqual(float(line.rsplit(" ", 1)[1]), 1, line)
            self.assertNotIn("ann", text)


if __name__ == "__main__":
    unittest.main()
