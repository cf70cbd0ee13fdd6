"""Refusals with a body of one's own, and fields in the form that an address, a mapping or a rule names,
on real processes."""

import json
import os
import tempfile
import unittest

from harness import BINARY, Headgate, Sidecar, run
from upstreams import Upstream

JSON_REFUSAL = """content_type: application/problem+json
body: |
  {"title":"Too Many Requests","rule":"${rule}","limit":${limit},"retry_after":${seconds}}
"""
RULES = """domain: default
descriptors:
- key: plain
  rate_limit: {period: 1h, requests_per_unit: 1}
- key: tokens
  rate_limit: {period: 1h, requests_per_unit: 1}
  quota_unit: tokens
  rate_limit_fields: anthropic
  refusal: {body: "the rule ${rule} allows ${limit}"}
"""
MAPPINGS = """trusted_proxies: [127.0.0.1]
original_request: x-forwarded
mappings:
- path: /tokens
  descriptors: [{entries: [{key: tokens, header: X-Key}]}]
- descriptors: [{entries: [{key: plain, header: X-Key}]}]
"""


class Refusals(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_forward_auth(self):
        default = self.write("default.yaml", JSON_REFUSAL)
        # A path in a configuration file begins at its folder.
        self.write("text.yaml", "body: slow down\n")
        configuration = self.write(
            "headgate.yaml", "listen_http: ['127.0.0.1:0?refusal_file=text.yaml&fields=openai']\n"
        )
        args = ("--config", configuration, "--refusal-file", default, "--rules", self.write("rules.yaml", RULES),
                "--auth", self.write("auth.yaml", MAPPINGS))  # fmt: skip
        with Headgate(*args) as server:
            second = server.wait_for(r"listening on 127\.0\.0\.1:(\d+)\n")

            def denied(path, key, port):
                for _ in range(2):
                    answer = server.request("GET", "/auth", headers={"X-Forwarded-Uri": path, "X-Key": key}, port=port)
                self.assertEqual(answer[0], 429)
                return answer[1:]

            fields, body = denied("/", "a", server.port)
            self.assertEqual(fields["content-type"], "application/problem+json")
            seconds = int(fields["retry-after"])
            self.assertIn(seconds, range(1, 3601))
            expected = {"title": "Too Many Requests", "rule": "plain", "limit": 1, "retry_after": seconds}
            self.assertEqual(json.loads(body), expected)
            self.assertEqual(fields["x-ratelimit-remaining"], "0")

            fields, body = denied("/", "b", second)
            self.assertEqual((fields["content-type"], body), ("text/plain; charset=utf-8", "slow down"))
            self.assertEqual(fields["x-ratelimit-remaining-requests"], "0")
            self.assertRegex(fields["x-ratelimit-reset-requests"], r"^(1h0m0s|\d+m[\d.]+s)$")

            for port in (server.port, second):
                fields, body = denied("/tokens", f"c{port}", port)
                self.assertEqual(body, "the rule tokens allows 1")
                self.assertEqual(fields["anthropic-ratelimit-tokens-remaining"], "0")
                self.assertRegex(fields["anthropic-ratelimit-tokens-reset"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

            status, fields, body = server.request("GET", "/auth", headers={"X-Forwarded-Uri": "/"})
            self.assertEqual((status, fields["content-type"]), (401, "application/problem+json"))
            self.assertIn("X-Key", json.loads(body)["hint"])

    def test_sidecar(self):
        refusal = self.write("refusal.yaml", JSON_REFUSAL)
        upstream = Upstream(self, lambda connection, _: connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n"))
        args = ("--refusal-file", refusal, "--rule", "client=ann: 1/hour", "--cycle", "1h")
        with Sidecar(upstream.port, args=args, capacity=10) as sidecar:
            statuses, bodies = [], []
            for client in ("ann", "ann", *["bob"] * 20):
                status, _, body = sidecar.request("GET", "/", headers={"X-Client-Id": client})
                statuses.append(status)
                bodies.append(body)
        self.assertEqual(statuses[:2], [204, 429])
        self.assertEqual(json.loads(bodies[1])["rule"], "client_ann")
        self.assertEqual(statuses[-1], 429)
        self.assertEqual(json.loads(bodies[-1])["rule"], "fair-share")

    def test_a_mistake_is_named_at_the_start(self):
        wrong = self.write("wrong.yaml", "body: '${second}'\n")
        for words in (["--refusal-file", wrong], ["--listen", f"127.0.0.1:0?refusal_file={wrong}"]):
            refused = run(BINARY, "serve", *words, "--admin-listen", "none")
            self.assertEqual(refused.returncode, 2, words)
            self.assertIn('wrong.yaml:1:7: body has an unknown placeholder "second"', refused.stderr)
            self.assertIn("${limit}, ${seconds} and ${rule}", refused.stderr)
        refused = run(BINARY, "sidecar", "--upstream", "http://127.0.0.1:1", "--capacity", "1", "--refusal-file", wrong)
        self.assertIn('wrong.yaml:1:7: body has an unknown placeholder "second"', refused.stderr)


if __name__ == "__main__":
    unittest.main()
