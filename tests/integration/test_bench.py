"""headgate bench against a real server: counts agree with the server's, and a stall shows."""

import json
import os
import subprocess
import tempfile
import threading
import unittest
import xml.etree.ElementTree

from harness import BINARY, Headgate, free_port, run, wait


class Bench(unittest.TestCase):
    def bench(self, server, *words):
        result = run(BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--json", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout), result.stderr

    def test_a_closed_loop_counts_every_answer(self):
        server = self.enterContext(Headgate())
        report, progress = self.bench(server, "--duration", "2s", "--connections", "8", "--pipeline", "4", "--keys", "10")
        self.assertEqual(report["loop"], "closed")
        answered = report["allowed"] + report["denied"]
        self.assertGreater(answered, 1000)
        self.assertEqual(report["errors"], 0)
        self.assertAlmostEqual(report["rate"], answered / 2, delta=1)
        decided = server.metric('headgate_requests_total{front="resp"}')
        # The server has decided a few more, which were in flight at the end.
        self.assertGreaterEqual(decided, answered)
        self.assertLessEqual(decided, answered + 8 * 4)
        self.assertEqual(len(progress.splitlines()), 2)

    def test_an_open_loop_keeps_its_rate_over_both_protocols(self):
        server = self.enterContext(Headgate("--rule", "api_key: 100/minute"))
        for words in ((), ("--http", "--key", "api_key", "--keys", "5")):
            report, _ = self.bench(server, "--rate", "500", "--duration", "2s", "--connections", "4", *words)
            self.assertEqual(report["loop"], "open")
            self.assertAlmostEqual(report["rate"], 500, delta=25)
            self.assertEqual(report["errors"], 0)
        self.assertGreater(report["denied"], 0, "the limit of 5 keys is 500")
        self.assertLessEqual(report["allowed"], 530)

    def test_a_stall_of_the_server_counts_for_every_request_that_was_due(self):
        server = self.enterContext(Headgate())
        pause = threading.Timer(1, server.pause)
        resume = threading.Timer(2, server.resume)
        self.addCleanup(server.resume)
        pause.start()
        resume.start()
        report, _ = self.bench(server, "--rate", "1000", "--duration", "4s", "--connections", "2")
        # A quarter of all requests was due during the stall, and waited for half a second on average.
        self.assertGreater(report["latency_ms"]["percentiles"]["90"], 300)
        self.assertGreater(report["latency_ms"]["max"], 900)

    def test_the_plot_is_a_picture(self):
        server = self.enterContext(Headgate())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.svg")
            self.bench(server, "--duration", "1s", "--plot", path)
            root = xml.etree.ElementTree.parse(path).getroot()
            line = root.find("{http://www.w3.org/2000/svg}polyline")
            self.assertGreater(len(line.get("points").split()), 20)

    def test_the_plot_goes_through_a_link_and_into_a_pipe(self):
        server = self.enterContext(Headgate())
        with tempfile.TemporaryDirectory() as folder:
            link, pipe, stdout = (os.path.join(folder, name) for name in ("link", "pipe", "stdout"))
            os.symlink("target", link)
            os.mkfifo(pipe)
            os.symlink("/proc/self/fd/1", stdout)  # as /dev/stdout
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            for path in (link, pipe):
                self.bench(server, "--duration", "1s", "--connections", "2", "--rate", "50", "--plot", path)
            with open(link, encoding="utf-8") as file:
                self.assertTrue(file.read().startswith("<svg"))
            self.assertTrue(os.read(reader, 4).startswith(b"<svg"))
            output = os.path.join(folder, "output")
            command = f"exec {BINARY} bench --server 127.0.0.1:{server.port} --duration 1s --rate 50 --plot {stdout} >{output}"
            self.assertEqual(run("bash", "-c", command).returncode, 0)
            with open(output, encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?s)^open loop of CL.THROTTLE.*\n<svg.*</svg>\s*$")
            self.assertTrue(os.path.islink(link) and os.path.islink(stdout))
            self.assertEqual(sorted(os.listdir(folder)), ["link", "output", "pipe", "stdout", "target"])

    def test_output_that_cannot_be_written_is_an_error(self):
        server = self.enterContext(Headgate())
        command = f"exec {BINARY} bench --server 127.0.0.1:{server.port} --duration 1s --connections 2 --rate 50"
        for more in (">/dev/full", "--json >/dev/full", ">&-"):
            result = run("bash", "-c", f"{command} {more}")
            self.assertEqual(result.returncode, 6, result.stderr)
            self.assertIn("error: the output could not be written", result.stderr)
        with tempfile.TemporaryDirectory() as folder:
            result = run("bash", "-c", f"ulimit -f 1; {command} --plot {folder}/p.svg")
            self.assertEqual(result.returncode, 6, result.stderr)
            self.assertIn("p.svg: File too large\nhint: choose another file", result.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_more_connections_than_open_files(self):
        server = self.enterContext(Headgate())
        command = f"exec {BINARY} bench --server 127.0.0.1:{server.port} --duration 1s --connections 200 --rate 50"
        result = run("bash", "-c", f"ulimit -n 40; {command}")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(
            result.stderr,
            "error: the system allows 40 open files; --connections 200 needs 216\n"
            "hint: raise `ulimit -n`, or lower --connections\n",
        )
        result = run("bash", "-c", f"ulimit -Sn 40; {command}")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_text_and_errors(self):
        server = self.enterContext(Headgate())
        address = f"127.0.0.1:{server.port}"
        text = run(BINARY, "bench", "--server", address, "--duration", "1s", "--rate", "100").stdout
        self.assertIn("open loop of CL.THROTTLE", text)
        self.assertRegex(text, r"answered   \d+/s of 100/s asked")
        for words, message in (
            (("--duration", "0s"), "--duration"),
            (("--connections", "0"), "--connections"),
            (("--pipeline", "2", "--http"), "--pipeline"),
            (("--server", "nowhere"), ""),
            (("--keys", "0"), "--keys"),
        ):
            result = run(BINARY, "bench", *words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(message, result.stderr)
        result = run(BINARY, "bench", "--server", f"127.0.0.1:{free_port()}")
        self.assertEqual(result.returncode, 3)
        self.assertIn("start a server", result.stderr)

    def test_a_login_that_is_refused_is_an_error_and_no_denial(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        users, wrong = (os.path.join(folder, name) for name in ("users", "wrong"))
        hashed = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        for path, text in ((users, f"ann check {hashed}\n"), (wrong, "ann:pear\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        server = self.enterContext(Headgate("--users-file", users, "--rule", "api_key: 1/minute"))
        words = (BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--connections", "2")
        # A wrong password gets 401 until the failed logins are limited: 429, like a denial.
        for more, kinds in (((), {"401"}), (("--credential-file", wrong), {"401", "429"})):
            # To verify a password takes long on a busy machine.
            result = run(*words, "--http", "--json", *more, *(("--duration", "10s") if more else ("--duration", "1s")))
            self.assertEqual(result.returncode, 1, result)
            report = json.loads(result.stdout)
            self.assertEqual((report["allowed"], report["denied"]), (0, 0))
            self.assertEqual(set(report["errors_by_kind"]), kinds)
            self.assertEqual(sum(report["errors_by_kind"].values()), report["errors"])
            self.assertIn("401: ", report["first_error"])
            self.assertIn(f"error: no answer is a decision; the first is {report['first_error']}\nhint: ", result.stderr)
            self.assertIn("--credential-file", result.stderr)
        words = (*words, "--duration", "1s")
        text = run(*words, "--http").stdout
        self.assertRegex(text, r"errors +\d+\n +401 +\d+\n  the first error is 401: this request needs the login")
        result = run(*words, "--json")
        self.assertEqual(set(json.loads(result.stdout)["errors_by_kind"]), {"NOAUTH"}, result)
        result = run(*words, "--credential-file", wrong)
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("hint: log in with --credential-file", result.stderr)
        asked = run(BINARY, "check", *words[2:4], "--credential-file", wrong, "--timeout", "30s", "api_key=k")
        self.assertEqual(asked.returncode, 2, asked)
        self.assertIn("(429): too many failed logins", asked.stderr)

    def test_requests_that_are_refused_are_errors(self):
        server = self.enterContext(Headgate())
        result = run(BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--duration", "1s", "--http", "--json", "--domain", "")
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual(report["errors_by_kind"], {"400": report["errors"]})
        self.assertEqual(report["first_error"], "400: domain must not be empty")
        self.assertIn("error: no answer is a decision; the first is 400: domain must not be empty\nhint: ", result.stderr)

    def test_keys_and_domains_without_a_rule_are_said(self):
        server = self.enterContext(Headgate("--rule", "api_key: 100/minute"))
        words = (BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--duration", "1s", "--connections", "1", "--rate", "10", "--http")
        result = run(*words, "--key", "other")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn('warning: no rule applies to the key "other" in the domain "default": all requests pass\n', result.stderr)
        self.assertIn('hint: no rule of the domain "default" applies; it has rules for: api_key\n', result.stderr)
        result = run(*words, "--domain", "edge")
        self.assertIn('hint: the domain "edge" has no rules; choose one that has, with --domain: "default"\n', result.stderr)
        self.assertNotIn("warning", run(*words).stderr)

    def test_a_server_that_answers_nothing_in_time_is_an_error(self):
        server = self.enterContext(Headgate())
        pause = threading.Timer(0.5, server.pause)
        self.addCleanup(server.resume)
        pause.start()
        words = (BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--rate", "1", "--duration", "1s")
        result = run(*words)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("error: no answer came within 1s\nhint: --duration", result.stderr)

    def test_a_server_that_goes_away_ends_it(self):
        server = self.enterContext(Headgate())
        words = (BINARY, "bench", "--server", f"127.0.0.1:{server.port}", "--duration", "60s")
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait(1)
        server.stop()
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 3, errors)


if __name__ == "__main__":
    unittest.main()
