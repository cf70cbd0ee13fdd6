"""The command line, as a person or a script uses it: output and exit codes."""

import json
import os
import tempfile
import unittest

from harness import BINARY, Headgate, free_port, run


def headgate(*words, **kwargs):
    return run(BINARY, *words, **kwargs)


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_help_is_one_screen(self):
        result = headgate("--help")
        self.assertEqual(result.returncode, 0)
        self.assertLessEqual(result.stdout.count("\n"), 40)
        for command in ("serve", "check", "validate", "explain", "scenario"):
            self.assertIn(command, result.stdout)

    def test_wrong_usage_ends_with_2_and_a_hint(self):
        for words in (["nonsense"], ["serve", "--no-such-flag"], ["check"], ["serve", "--listen", "nowhere"]):
            result = headgate(*words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn("hint:", result.stderr, words)

    def test_check_asks_a_running_server(self):
        with Headgate("--rule", "user: 1/hour") as server:
            address = f"127.0.0.1:{server.port}"
            self.assertEqual(headgate("check", "--server", address, "user=ann").returncode, 0)
            denied = headgate("check", "--server", address, "--json", "user=ann")
            self.assertEqual(denied.returncode, 1)
            self.assertFalse(json.loads(denied.stdout)["allowed"])
        self.assertEqual(headgate("check", "--server", f"127.0.0.1:{free_port()}", "user=ann").returncode, 3)

    def test_check_decides_locally(self):
        self.assertEqual(headgate("check", "--rule", "user: 1/hour", "user=ann").returncode, 0)
        self.assertEqual(headgate("check", "--rule", "user: 0/hour", "user=ann").returncode, 1)

    def test_validate_reports_every_problem_with_its_place(self):
        good = self.write("good.yaml", "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: second, requests_per_unit: 1}\n")
        bad = self.write("bad.yaml", "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: fortnight}\n  - value: v\n")
        self.assertEqual(headgate("validate", good).returncode, 0)
        result = headgate("validate", bad)
        self.assertEqual(result.returncode, 2)
        text = result.stdout + result.stderr
        self.assertIn("invalid rate limit unit 'fortnight'", text)
        self.assertIn("descriptor has empty key", text)
        self.assertRegex(text, r"bad\.yaml:4:\d+")
        self.assertRegex(text, r"bad\.yaml:5:\d+")

    def test_explain_says_which_rule_and_why(self):
        rules = self.write("r.yaml", "domain: d\ndescriptors:\n  - key: k\n    value: gold\n    rate_limit: {unit: second, requests_per_unit: 7}\n")
        result = headgate("explain", "--rules", rules, "d", "k=gold")
        self.assertEqual(result.returncode, 0)
        self.assertIn("k_gold", result.stdout)
        self.assertIn("7", result.stdout)

    def test_scenario_says_what_differs(self):
        lines = ["rule login = 1 per 10s burst 5", "at 0s login:ann x5 allow remaining 0", "at 0s login:ann deny retry 10s"]
        self.assertEqual(headgate("scenario", self.write("a.scenario", "\n".join(lines) + "\n")).returncode, 0)
        wrong = self.write("b.scenario", "\n".join([*lines[:2], "at 0s login:ann deny retry 9s"]) + "\n")
        result = headgate("scenario", wrong)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout + result.stderr, r"b\.scenario:3.*9s.*10s")

    def test_print_config_says_where_each_value_came_from(self):
        config = self.write("headgate.yaml", "max_buckets: 1234\n")
        result = headgate("serve", "--config", config, "--threads", "1", "--print-config",
                          env={**os.environ, "HEADGATE_SNAPSHOT": "/tmp/s"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"max_buckets.*1234.*headgate\.yaml")
        self.assertRegex(result.stdout, r"threads.*1.*--threads")
        self.assertRegex(result.stdout, r"snapshot.*/tmp/s.*HEADGATE_SNAPSHOT")


if __name__ == "__main__":
    unittest.main()
