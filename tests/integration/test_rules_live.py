"""Rules that change while the server runs."""

import json
import os
import tempfile
import unittest

from harness import BINARY, Headgate, replace_file, run, until

RULE = """domain: edge
descriptors:
  - key: api_key
    rate_limit: {{requests_per_unit: {requests}, period: 1h, algorithm: token_bucket}}
"""


class LiveRules(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, text, name="edge.yaml"):
        return replace_file(os.path.join(self.folder, name), text)

    def remaining(self, server):
        return server.check("edge", cost=0, api_key="k1")[2]["decisions"][0]["remaining"]

    def limit(self, server):
        return server.check("edge", cost=0, api_key="k1")[2]["decisions"][0]["limit"]

    def test_an_edit_is_in_force_within_a_second_and_keeps_counts(self):
        self.write(RULE.format(requests=100))
        with Headgate("--rules", self.folder) as server:
            server.check("edge", cost=95, api_key="k1")
            self.write(RULE.format(requests=10))
            until(lambda: self.limit(server) == 10, 1, "the lower limit is in force")
            self.assertEqual(self.remaining(server), 5)
            self.write(RULE.format(requests=100))
            until(lambda: self.limit(server) == 100, 1, "the old limit is in force again")
            self.assertEqual(self.remaining(server), 5)

    def test_the_log_names_each_rule_that_changed_with_its_limits(self):
        self.write(RULE.format(requests=100))
        with Headgate("--rules", self.folder, "--log-format", "json") as server:
            other = "domain: other\ndescriptors:\n" + "".join(f"- {{key: k{n}, rate_limit: {{unit: day, requests_per_unit: 7}}}}\n" for n in range(21))
            self.write(RULE.format(requests=10))
            until(lambda: server.errors().count("rules.changed") == 1, 2, "the log names the rule")
            self.write(other, "other.yaml")
            until(lambda: server.errors().count("rules.changed") == 2, 2, "the log names the rules")
            self.write(RULE.format(requests="10, sharing: strict"))
            until(lambda: server.errors().count("rules.changed") == 3, 2, "the log names the field")
            self.assertEqual(server.stop(), 0)
            events = [json.loads(line) for line in server.errors().splitlines()]
        first, second, third = (event for event in events if event["event"] == "rules.changed")
        self.assertEqual((first["rules"], first["left_out"]), (1, 0))
        self.assertRegex(first["changes"], "^edge api_key: 100 per [^;]* -> 10 per [^;]*$")
        # Ten of the 21 rules are named.
        self.assertEqual((second["rules"], second["left_out"]), (21, 11))
        self.assertEqual(second["changes"].count("none -> 7 per"), 10)
        self.assertTrue(third["changes"].endswith(" (changed: sharing)"), third["changes"])

    def test_an_edit_in_place_is_noticed(self):
        path = self.write(RULE.format(requests=100))
        with Headgate("--rules", path) as server:
            with open(path, "w", encoding="utf-8") as file:
                file.write(RULE.format(requests=50))
            until(lambda: self.limit(server) == 50, 1, "the edit is in force")

    def test_a_bad_file_keeps_the_old_rules_and_is_reported(self):
        self.write(RULE.format(requests=100))
        with Headgate("--rules", self.folder) as server:
            self.write("domain: edge\ndescriptors:\n  - key: api_key\n    rate_limt: {}\n")
            until(lambda: "unknown key 'rate_limt'" in server.errors(), 1, "the log names the problem")
            self.assertIn("edge.yaml:4:5", server.errors())
            self.assertEqual(self.limit(server), 100)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)

    def test_the_json_log_stays_valid_whatever_a_file_contains(self):
        for args, env in ((["--log-format", "json"], {}), ([], {"HEADGATE_LOG_FORMAT": "json"})):
            self.write(RULE.format(requests=100))
            with Headgate("--rules", self.folder, *args, env=env) as server:
                self.write('domain: edge\n"say \\"}\\n\\e[2J é": 1\n')
                until(lambda: "rules.problem_found" in server.errors(), 5, "the log names the problem")
                self.assertEqual(server.stop(), 0)
                events = [json.loads(line) for line in server.errors().splitlines()]
            for event in events:
                self.assertEqual(list(event)[:3], ["time", "level", "event"])
            names = [event["event"] for event in events]
            self.assertIn("server.started", names)
            self.assertIn("server.stopped", names)
            problem = next(event for event in events if event["event"] == "rules.problem_found")
            self.assertRegex(problem["reason"], r"""edge\.yaml:2:1: .*unknown key .say "}""")

    def test_the_link_swap_of_kubernetes(self):
        def version(name, requests):
            os.mkdir(os.path.join(self.folder, name))
            with open(os.path.join(self.folder, name, "edge.yaml"), "w", encoding="utf-8") as file:
                file.write(RULE.format(requests=requests))

        version("..v1", 100)
        os.symlink("..v1", os.path.join(self.folder, "..data"))
        os.symlink("..data/edge.yaml", os.path.join(self.folder, "edge.yaml"))
        with Headgate("--rules", self.folder) as server:
            self.assertEqual(self.limit(server), 100)
            version("..v2", 20)
            os.symlink("..v2", os.path.join(self.folder, "..data_tmp"))
            os.replace(os.path.join(self.folder, "..data_tmp"), os.path.join(self.folder, "..data"))
            until(lambda: self.limit(server) == 20, 1, "the new version is in force")


class NoRules(unittest.TestCase):
    """The behaviour before rules are loaded, and without any."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, text):
        with open(os.path.join(self.folder, "edge.yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    @staticmethod
    def redis(server, *words):
        with server.connect() as connection:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            return connection.recv(4096).decode()

    def assert_not_ready(self, server):
        status, _, text = server.request("GET", "/readyz")
        self.assertEqual(status, 503, text)
        self.assertIn("no rules are loaded yet", text)
        status, fields, problem = server.check("edge", api_key="k1")
        self.assertEqual((status, fields["retry-after"]), (503, "1"))
        self.assertIn("holds none yet", problem["hint"])
        self.assertIn("no file *.yaml or *.yml in this directory", server.errors())
        self.assertEqual(
            self.redis(server, "HG.CHECK", "edge", "ENTRIES", "1", "api_key", "k1"),
            "-ERR no rate limit configuration loaded\r\n",
        )
        # CL.THROTTLE brings its own limit, so it needs no rules.
        self.assertTrue(self.redis(server, "CL.THROTTLE", "k", "4", "1", "1").startswith("*5\r\n:0\r\n:5\r\n"))

    def test_without_a_source_everything_passes_and_the_log_says_so(self):
        with Headgate() as server:
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
            status, _, answer = server.check("edge", api_key="k1")
            self.assertEqual((status, answer["decisions"][0]["rule"]), (200, None))
            self.assertIn("allowed", self.redis(server, "HG.CHECK", "edge", "ENTRIES", "1", "api_key", "k1"))
            line = next(line for line in server.errors().splitlines() if "rules.not_configured" in line)
            self.assertIn("every rule-based request passes", line)
            self.assertIn("hint", line)

    def test_the_server_waits_for_files_in_an_empty_directory(self):
        with Headgate("--rules", self.folder) as server:
            self.assert_not_ready(server)
            self.assertIn("rules.awaited", server.errors())
            self.write("domain: edge\ndescriptors: [{key: api_key, rate_limt: {}}]\n")
            until(lambda: "unknown key 'rate_limt'" in server.errors(), 10, "the log names the problem")
            self.assert_not_ready(server)
            self.write(RULE.format(requests=5))
            until(lambda: server.request("GET", "/readyz")[0] == 200, 10, "the first rules are in force")
            self.assertEqual(server.check("edge", api_key="k1")[2]["decisions"][0]["remaining"], 4)
            # Rules stay in force when their files disappear.
            os.remove(os.path.join(self.folder, "edge.yaml"))
            until(lambda: "the rules in force stay" in server.errors(), 10, "the log reports the missing files")
            self.assertEqual(server.check("edge", api_key="k1")[2]["decisions"][0]["remaining"], 3)

    def test_one_liners_do_not_hide_an_empty_directory(self):
        with Headgate("--rules", self.folder, "--rule", "user: 5/hour") as server:
            self.assert_not_ready(server)

    def test_a_missing_path_is_an_error_at_start(self):
        missing = os.path.join(self.folder, "missing")
        refused = run(BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", "--rules", missing)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"{missing}: cannot be read", refused.stderr)


if __name__ == "__main__":
    unittest.main()
