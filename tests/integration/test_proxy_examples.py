"""The commands that start a proxy and Headgate: examples/nginx/run, examples/caddy/run, examples/haproxy/run."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import BINARY, free_port, require, run
from proxies import EXAMPLES


class Examples(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.env = {**os.environ, "TMPDIR": self.folder, "HEADGATE_BINARY": os.path.abspath(BINARY)}

    def run_example(self, name, *words, **kwargs):
        require(name, "curl")
        done = run(os.path.join(EXAMPLES, name, "run"), *words, timeout=60, **{"env": self.env, **kwargs})
        self.assertEqual(os.listdir(self.folder), [])
        return done

    def use_program(self, name, text):
        """A program in Python that runs instead of the one of this name."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/python3\n" + text)
        os.chmod(os.path.join(folder, name), 0o755)
        self.env["PATH"] = f"{folder}:{os.environ['PATH']}"

    def check(self, name, *words, **kwargs):
        done = self.run_example(name, "--check", *words, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        answers = re.findall(r"request \d+: (.*)\n", done.stdout)
        self.assertEqual(answers[:10], 10 * ["200"])
        for answer in answers[10:]:
            status, retry_after = re.fullmatch(r"(\d+), Retry-After: (\d+)", answer).groups()
            self.assertEqual(status, "429")
            # The next request is allowed 6 s after the tenth.
            self.assertIn(int(retry_after), range(3, 7))
        self.assertEqual(len(answers), 12)

    def test_nginx_lets_ten_requests_pass_and_refuses_two(self):
        self.check("nginx")

    def test_caddy_lets_ten_requests_pass_and_refuses_two(self):
        self.check("caddy")

    def test_haproxy_lets_ten_requests_pass_and_refuses_two(self):
        self.check("haproxy")

    def test_wrong_options_are_refused(self):
        for words in ((), ("apache",), ("nginx", "--what"), ("nginx", "--port")):
            self.assertEqual(run(os.path.join(EXAMPLES, "with-proxy"), *words).returncode, 2, words)
        for port in ("80", "0999", "65533", "1e4", "-1", "$(id)", "99999999999999999999"):
            refused = self.run_example("nginx", "--port", port)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertEqual(refused.stderr, f"with-proxy: --port {port}\nhint: write a whole number from 1024 to 65532\n")

    def test_a_port_with_a_leading_zero_is_decimal(self):
        first = free_port()
        done = self.run_example("nginx", "--check", "--port", f"0{first}")
        self.assertIn(f"nginx on http://127.0.0.1:{first} asks Headgate on 127.0.0.1:{first + 1}:", done.stdout, done.stderr)

    def test_the_path_of_headgate_may_be_relative(self):
        path = os.path.abspath(BINARY)
        self.check("caddy", env={**self.env, "HEADGATE_BINARY": f"./{os.path.basename(path)}"}, cwd=os.path.dirname(path))

    def test_a_port_that_is_taken_is_named_before_anything_starts(self):
        # Which of the four ports each proxy needs: HAProxy asks over SPOE, and is the application itself.
        for name, needed in (("nginx", (0, 1, 3)), ("caddy", (0, 1, 3)), ("haproxy", (0, 1, 2))):
            for offset in needed:
                with self.subTest(name, offset=offset), socket.create_server(("127.0.0.1", free_port())) as server:
                    port = server.getsockname()[1]
                    for words in (("--check",), ()):
                        done = self.run_example(name, "--port", str(port - offset), *words)
                        self.assertEqual((done.returncode, done.stdout), (1, ""))
                        self.assertIn(f"another server listens on 127.0.0.1:{port}", done.stderr)
                        self.assertIn("--port", done.stderr)

    def test_without_a_port_a_second_one_runs_beside_the_first(self):
        require("nginx")
        words = os.path.join(EXAMPLES, "nginx/run")
        with subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as first:
            self.addCleanup(first.terminate)
            lines = [first.stdout.readline() for _ in range(2)]
            self.assertIn("everything runs until Ctrl-C", lines[1])
            # Not run_example(): the folder of the first is there.
            second = run(words, "--check", env=self.env, timeout=60)
            self.assertEqual(second.returncode, 0, second.stdout + second.stderr)
            self.assertNotEqual(second.stdout.splitlines()[0], lines[0].rstrip())
            # As a terminal does it: the processes that it has started get the signal too.
            os.killpg(first.pid, signal.SIGINT)
            rest = first.stdout.read()
            self.assertEqual((first.wait(timeout=30), rest), (130, ""))
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_program_that_ends_is_an_error(self):
        self.use_program("nginx", "import sys\nsys.exit('no luck')\n")
        for words in (("--check",), ()):
            done = self.run_example("nginx", *words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("no luck\nwith-proxy: nginx has ended\nhint:", done.stderr)

    def test_another_server_at_the_same_port_is_not_taken_for_it(self):
        # Another process listens, and the program ends as if it had found its ports taken.
        program = """
import os, re, signal, socket, sys
ready, done = os.pipe()
if os.fork() == 0:
    signal.alarm(10)
    ports = re.findall(r"listen 127.0.0.1:(\\d+)", open("nginx.conf").read())
    servers = [socket.create_server(("127.0.0.1", int(port))) for port in ports]
    os.write(done, b"1")
    signal.pause()
os.read(ready, 1)
sys.exit("taken")
"""
        self.use_program("nginx", program)
        done = self.run_example("nginx")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("taken\nwith-proxy: nginx has ended\nhint:", done.stderr)

    def test_a_program_that_ends_later_is_an_error(self):
        require("nginx")
        with subprocess.Popen(os.path.join(EXAMPLES, "nginx/run"), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as example:
            self.addCleanup(example.terminate)
            self.assertIn("everything runs until Ctrl-C", "".join(example.stdout.readline() for _ in range(2)))
            with open(f"/proc/{example.pid}/task/{example.pid}/children", encoding="utf-8") as children:
                headgate = int(children.read().split()[0])
            os.kill(headgate, signal.SIGKILL)
            rest = example.stdout.read()
            self.assertEqual(example.wait(timeout=30), 1)
            self.assertIn("with-proxy: Headgate has ended\nhint:", rest)
        self.assertEqual(os.listdir(self.folder), [])

    def test_other_answers_than_ten_and_two_are_an_error(self):
        # A proxy that asks nobody. Its configuration has its port, and that of the application.
        program = """
import http.server, re, threading
class All(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(STATUS)
        self.end_headers()
ports = re.findall(r"listen 127.0.0.1:(\\d+)", open("nginx.conf").read())
servers = [http.server.HTTPServer(("127.0.0.1", int(port)), All) for port in ports]
for server in servers:
    threading.Thread(target=server.serve_forever).start()
"""
        for status, passed in ((200, 12), (429, 0), (500, 0)):
            self.use_program("nginx", program.replace("STATUS", str(status)))
            done = self.run_example("nginx", "--check")
            self.assertEqual(re.findall(r"request \d+: (.*)\n", done.stdout), 12 * [str(status)])
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"with-proxy: {passed} requests passed and 0 got 429 with Retry-After, not 10 and 2\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
