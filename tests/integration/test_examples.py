"""What examples/ promises: it runs as it says, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import tempfile
import unittest

from harness import BINARY, INTEGRATION, Headgate, require, run

EXAMPLE = os.path.join(INTEGRATION, "../../examples/cluster/run")


class LoginRules(unittest.TestCase):
    def test_denied_attempts_count_towards_the_hour(self):
        rules = os.path.join(INTEGRATION, "../../examples/rules/login.yaml")
        with Headgate("--rules", rules) as server:
            answers = [server.check("login", account="ann") for _ in range(20)]
        self.assertEqual([answer[0] for answer in answers], 5 * [200] + 15 * [429])
        retry_ms = [answer[2]["decisions"][0]["retry_after_ms"] for answer in answers]
        self.assertLessEqual(max(retry_ms[:19]), 10_000, "until then the next token is what is waited for")
        self.assertGreater(retry_ms[19], 3_500_000, "twenty attempts are an hour's")


class ClusterExample(unittest.TestCase):
    def setUp(self):
        require("redis-server", "redis-cli")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.env = {**os.environ, "TMPDIR": self.folder, "HEADGATE_BINARY": os.path.abspath(BINARY)}

    def test_one_limit_holds_over_all_instances(self):
        done = run(EXAMPLE, "--seconds", "2", env=self.env, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        each = [int(n) for n in re.findall(r"admitted +(\d+)\n", done.stdout)]
        together, most = map(int, re.search(r"together admitted (\d+); .* = (\d+)\n", done.stdout).groups())
        self.assertEqual(len(each), 3)
        self.assertEqual(sum(each), together)
        self.assertLessEqual(together, most)
        self.assertGreater(together, most / 2)
        self.assertEqual(os.listdir(self.folder), [])

    def test_ctrl_c_stops_and_removes_everything(self):
        with subprocess.Popen([EXAMPLE], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as example:
            self.addCleanup(example.kill)
            for line in example.stdout:
                if line.startswith("asking"):
                    break
            example.send_signal(signal.SIGINT)
            # The end of its output, which all that it started shares, comes when the last of them has ended.
            rest = example.stdout.read()
            self.assertEqual(example.wait(timeout=30), 130, rest)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_it_cannot_do_it_says(self):
        missing = run(EXAMPLE, env={**self.env, "HEADGATE_BINARY": "/nowhere"})
        self.assertEqual(missing.returncode, 1)
        self.assertIn("hint:", missing.stderr)
        self.assertEqual(run(EXAMPLE, "--what", env=self.env).returncode, 2)

    def test_a_number_that_is_none_is_refused_before_anything_starts(self):
        for flag, words in (("--seconds", ("abc", "0", "-1", "1.5", "99999", "$(id)", "a[0]")), ("--port", ("abc", "80", "65514"))):
            for word in words:
                refused = run(EXAMPLE, flag, word, env=self.env)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
                self.assertIn(f"run: {flag} {word}\nhint: write a whole number from", refused.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
