"""Limits that depend on who asks: by the network of the client, and by a token or a trusted proxy. Clients
that choose their headers, their tokens' claims and their plans gain nothing."""

import base64
import hashlib
import hmac
import json
import os
import random
import tempfile
import time
import unittest

from harness import BINARY, PATIENT, Headgate, RedisServer, Sidecar, replace_file, run, until
from upstreams import Upstream

SECRET = "0123456789abcdef0123456789abcdef"
RULES = """domain: default
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3, algorithm: fixed_window, max: 40, plans: {free: 3, gold: 20}}
  - key: network
    value: office
  - key: network
    value: cloud
    rate_limit: {unit: hour, requests_per_unit: 2, algorithm: fixed_window}
  - key: network
    rate_limit: {unit: hour, requests_per_unit: 4, algorithm: fixed_window}
"""
CLAIMS = """trusted_proxies: [127.0.0.1]
jwt: [{secret_file: secret}]
mappings:
- descriptors:
  - entries: [{key: user, claim: sub}]
    limit_from: {claim: plan}
"""
HEADER = """trusted_proxies: [%s]
mappings:
- descriptors:
  - entries: [{key: user, header: X-Client-Id}]
    limit_from: {header: X-Plan}
"""
NETWORKS = """trusted_proxies: [127.0.0.1]
networks:
- {name: office, networks: [198.51.100.0/24]}
- {name: cloud, networks_file: cloud.txt}
mappings:
- descriptors:
  - entries: [{key: network, network: true, otherwise: internet}]
"""


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(claims, secret=SECRET):
    """`claims`: a dictionary, or the text of a JSON object."""
    text = claims if isinstance(claims, str) else json.dumps(claims)
    message = encode(b'{"alg":"HS256"}') + "." + encode(text.encode())
    return message + "." + encode(hmac.new(secret.encode(), message.encode(), hashlib.sha256).digest())


def answer(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    return True


class GivenLimits(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.write("secret", SECRET)
        self.rules = self.write("rules.yaml", RULES)

    def write(self, name, text):
        return replace_file(os.path.join(self.folder, name), text)

    def serve(self, mappings, *args):
        path = self.write("mappings.yaml", mappings)
        return self.enterContext(Headgate("--rules", self.rules, "--auth", path, *args))

    def ask(self, server, claims, secret=SECRET):
        return server.request("GET", "/auth", headers={"Authorization": "Bearer " + token(claims, secret)})[0]

    def passing(self, server, claims, tries=60):
        return [self.ask(server, claims) for _ in range(tries)].count(200)

    def test_a_claim_names_the_plan_or_the_number(self):
        server = self.serve(CLAIMS)
        self.assertEqual(self.passing(server, {"sub": "a", "plan": "gold"}), 20)
        self.assertEqual(self.passing(server, {"sub": "b", "plan": 7}), 7)
        self.assertEqual(self.passing(server, {"sub": "c"}), 3)
        fields = server.request("GET", "/auth", headers={"Authorization": "Bearer " + token({"sub": "d", "plan": "gold"})})[1]
        self.assertEqual(fields["ratelimit-policy"], '"user";q=20;w=3600')

    def test_wild_claims_have_no_more_than_the_rule_allows(self):
        server = self.serve(CLAIMS)
        wild = ["1" + "0" * 30, "99999999999999999999", "-1", "1e9", "1.5", "40.0", '"0x28"', '" 40"', '"40 "', '"+40"', '"٤٠"', "true"]
        wild += ["null", "[40]", '{"a":40}', '"gold\\u0000"', '"GOLD"', '"' + "9" * 3000 + '"', '"' + "x" * 3000 + '"', '"user"', "01"]
        for number, plan in enumerate(wild):
            passed = self.passing(server, f'{{"sub":"w{number}","plan":{plan}}}', 45)
            self.assertIn(passed, (0, 3, 40), plan)
            is_number = plan.strip('"').isdigit() and plan.isascii() and plan != "01"
            self.assertEqual(passed == 40, is_number or plan == "40.0", plan)
        self.assertGreaterEqual(server.metric('headgate_given_limits_total{event="capped"}'), 45)
        self.assertGreaterEqual(server.metric('headgate_given_limits_total{event="unknown"}'), 45)

    def test_a_spoilt_token_is_not_as_if_there_were_none(self):
        mappings = CLAIMS.replace("{key: user, claim: sub}", "{key: user, client_address: true}")
        server = self.serve(mappings)
        headers = {"X-Forwarded-For": "192.0.2.1"}
        self.assertEqual(server.request("GET", "/auth", headers=headers)[0], 200)
        for spoilt in (token({"plan": "gold"}, "another secret, as long as it is"), token({"plan": "gold"}) + "=", "x"):
            fields = {**headers, "Authorization": "Bearer " + spoilt}
            self.assertEqual(server.request("GET", "/auth", headers=fields)[0], 401, spoilt)
        self.assertEqual(server.request("GET", "/auth", headers={**headers, "Authorization": "Bearer " + token({"plan": "0"})})[0], 429)

    def test_changing_plans_gains_nothing_in_a_fleet(self):
        redis = self.enterContext(RedisServer())
        store = ("--store", f"redis://127.0.0.1:{redis.port}", *PATIENT)
        servers = [self.serve(CLAIMS, *store), self.serve(CLAIMS, *store)]
        rng = random.Random(1)
        plans = ["free", "gold", 1, 15, "", "none", 0]
        passed = sum(self.ask(rng.choice(servers), {"sub": "ann", "plan": rng.choice(plans)}) == 200 for _ in range(250))
        self.assertLessEqual(passed, 20)
        passed += self.passing(servers[0], {"sub": "ann", "plan": "gold"})
        self.assertEqual(passed, 20, "nothing is lost either")
        self.assertEqual(self.passing(servers[1], {"sub": "ann", "plan": 40}), 20, "a better plan has the rest")
        self.assertEqual(self.passing(servers[1], {"sub": "bob", "plan": "gold"}), 20, "another client")

    def test_the_sidecar_believes_a_header_only_from_trusted_proxies(self):
        upstream = Upstream(self, answer)
        for trusted, passing in (("10.0.0.7", 3), ("127.0.0.1", 20)):
            path = self.write("mappings.yaml", HEADER % trusted)
            with Sidecar(upstream.port, args=("--rules", self.rules, "--mappings", path)) as sidecar:
                headers = {"X-Client-Id": "ann", "X-Plan": "gold"}
                statuses = [sidecar.request("GET", "/", headers=headers)[0] for _ in range(30)]
                self.assertEqual(statuses.count(200), passing, trusted)
                # Headers that look like it, and forwarding headers, change nothing.
                for more in ({"X_Plan": "40"}, {"X-Forwarded-For": "10.0.0.7"}, {"X-Plan": "40", "X-Forwarded-For": "10.0.0.7"}):
                    status = sidecar.request("GET", "/", headers={**headers, "X-Plan": "gold", **more})[0]
                    self.assertEqual(status, 200 if trusted == "127.0.0.1" and more.get("X-Plan") else 429, more)

    def test_validate_refuses_tokens_that_nobody_verifies(self):
        path = self.write("mappings.yaml", CLAIMS.replace("secret_file: secret", "unverified: true"))
        done = run(BINARY, "validate", "--auth", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("limit_from needs verified tokens", done.stderr + done.stdout)
        done = run(BINARY, "validate", "--auth", self.write("mappings.yaml", HEADER % "127.0.0.1"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("clients choose their limit if a trusted proxy passes on their X-Plan", done.stderr + done.stdout)

    # ---- Networks

    def from_address(self, server, address):
        return server.request("GET", "/auth", headers={"X-Forwarded-For": address})[0]

    def test_networks_have_limits_of_their_own_and_are_followed(self):
        self.write("cloud.txt", "203.0.113.0/24\n203.0.113.64/26 office # a tunnel\n")
        server = self.serve(NETWORKS)
        self.assertEqual([self.from_address(server, "198.51.100.7") for _ in range(10)], 10 * [200])
        self.assertEqual([self.from_address(server, f"203.0.113.{i}") for i in range(3)], [200, 200, 429])
        self.assertEqual(self.from_address(server, "64:ff9b::203.0.113.1"), 429)
        self.assertEqual(self.from_address(server, "::ffff:203.0.113.1"), 429)
        self.assertEqual([self.from_address(server, "203.0.113.65") for _ in range(5)], 5 * [200])
        self.assertEqual([self.from_address(server, f"192.0.2.{i}") for i in range(5)], 4 * [200] + [429])
        # A client before a trusted proxy writes what it likes to the left.
        self.assertEqual(self.from_address(server, "198.51.100.7, 203.0.113.1"), 429)
        self.assertEqual(server.request("GET", "/auth")[0], 401, "nobody")
        self.write("cloud.txt", "192.0.2.0/24 office\n")
        until(lambda: self.from_address(server, "192.0.2.1") == 200, 3, "the file is followed")
        self.write("cloud.txt", "192.0.2.1/24\n")
        until(lambda: "the network of this address is 192.0.2.0/24" in server.errors(), 3, "the log says what is wrong")
        self.assertEqual(self.from_address(server, "192.0.2.1"), 200, "the lists in force stay")

    def test_a_hundred_thousand_networks(self):
        lines = [f"{10 + i // 65536}.{i // 256 % 256}.{i % 256}.0/24 {'office' if i % 2 else 'cloud'}" for i in range(100_000)]
        self.write("cloud.txt", "\n".join(lines))
        began = time.monotonic()
        server = self.serve(NETWORKS)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual([self.from_address(server, "10.0.1.7") for _ in range(5)], 5 * [200])
        self.assertEqual([self.from_address(server, "11.134.158.9") for _ in range(3)], [200, 200, 429])


if __name__ == "__main__":
    unittest.main()
