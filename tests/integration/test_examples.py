"""Each example in examples/ runs as it says, and leaves no process or file behind."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import BINARY, INTEGRATION, Headgate, free_port, require, run

ROOT = os.path.abspath(os.path.join(INTEGRATION, "../.."))
EXAMPLE = os.path.join(ROOT, "examples/cluster/run")
HEADGATE = "build/release/bin/headgate"


class LoginRules(unittest.TestCase):
    def test_denied_attempts_count_towards_the_hour(self):
        rules = os.path.join(INTEGRATION, "../../examples/rules/login.yaml")
        with Headgate("--rules", rules) as server:
            answers = [server.check("login", account="ann") for _ in range(20)]
        self.assertEqual([answer[0] for answer in answers], 5 * [200] + 15 * [429])
        retry_ms = [answer[2]["decisions"][0]["retry_after_ms"] for answer in answers]
        self.assertLessEqual(max(retry_ms[:19]), 10_000, "until then a client waits for the next token")
        self.assertGreater(retry_ms[19], 3_500_000, "twenty attempts use up the hour")


class DocumentedCommands(unittest.TestCase):
    """The commands in the pages work in a shell, in the order of the page."""

    @staticmethod
    def pages():
        """The commands of each page, with their continuation lines."""
        pages = [os.path.join(ROOT, "README.md")]
        for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
            pages += [os.path.join(folder, name) for name in names if name.endswith(".md")]
        for page in sorted(pages):
            with open(page, encoding="utf-8") as file:
                text = file.read().replace("\\\n", " ")
            yield os.path.relpath(page, ROOT), re.findall(r"^\$ (.*)$", text, re.MULTILINE)

    def test_make_the_directories_that_they_need(self):
        needed = 0
        for page, commands in self.pages():
            made = set()
            for command in commands:
                if match := re.match(r"sudo install -d .* (/\S+)$", command):
                    made.add(match.group(1))
                    continue
                for path in re.findall(r"(?<![\w.])(/(?:var/lib|run)/\S+)", command):
                    needed += 1
                    self.assertIn(os.path.dirname(path), made, f"{page}: {command}")
        self.assertGreater(needed, 0)

    def test_find_the_command_line_of_zookeeper_where_debian_has_it(self):
        require("java")
        found = 0
        for page, commands in self.pages():
            env = dict(os.environ, PATH="/usr/bin:/bin")
            for command in commands:
                if match := re.match(r"PATH=\$PATH:(\S+)$", command):
                    env["PATH"] += f":{match.group(1)}"
                if program := re.match(r"(\S*zkCli\.sh) ", command):
                    found += 1
                    self.assertIsNotNone(shutil.which(program.group(1), path=env["PATH"]), f"{page}: {command}")
        self.assertGreater(found, 0)


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
            # All processes that the example started share its output, so the output ends when the
            # last of them has ended.
            rest = example.stdout.read()
            self.assertEqual(example.wait(timeout=30), 130, rest)
        self.assertEqual(os.listdir(self.folder), [])

    def test_it_reports_what_it_cannot_do(self):
        missing = run(EXAMPLE, env={**self.env, "HEADGATE_BINARY": "/nowhere"})
        self.assertEqual(missing.returncode, 1)
        self.assertIn("hint:", missing.stderr)
        self.assertEqual(run(EXAMPLE, "--what", env=self.env).returncode, 2)

    def test_an_invalid_number_is_refused_before_anything_starts(self):
        for flag, words in (("--seconds", ("abc", "0", "-1", "1.5", "99999", "$(id)", "a[0]")), ("--port", ("abc", "80", "65514"))):
            for word in words:
                refused = run(EXAMPLE, flag, word, env=self.env)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
                self.assertIn(f"run: {flag} {word}\nhint: write a whole number from", refused.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_port_that_is_taken_is_named_before_anything_starts(self):
        with socket.create_server(("127.0.0.1", free_port())) as server:
            port = server.getsockname()[1]
            refused = run(EXAMPLE, "--port", str(port), "--seconds", "1", env=self.env)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn(f"run: another server listens on 127.0.0.1:{port}\nhint:", refused.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class ZooKeeperExample(unittest.TestCase):
    EXAMPLE = os.path.join(ROOT, "examples/zookeeper/run")

    def setUp(self):
        require("java", "redis-server", "curl")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.env = {**os.environ, "TMPDIR": self.folder, "HEADGATE_BINARY": os.path.abspath(BINARY)}

    def test_a_limit_changes_while_three_instances_serve(self):
        for store in ("redis", "zookeeper", "memory"):
            done = run(self.EXAMPLE, "--check", "--store", store, env=self.env, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(re.findall(r"  (\d+) × (\d+)\n", done.stdout), [("10", "200"), ("10", "429"), ("5", "200"), ("15", "429")])
            self.assertEqual(os.listdir(self.folder), [])

    def test_examples_that_start_at_the_same_time_choose_different_ports(self):
        for words in ([EXAMPLE, "--seconds", "4"], [self.EXAMPLE, "--check", "--store", "memory"]):
            examples = [subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
            for example in examples:
                self.addCleanup(example.kill)
            said = [example.communicate(timeout=240)[0] for example in examples]
            self.assertEqual([example.returncode for example in examples], [0, 0], "\n".join(said))
            ports = [re.search(r"(?:Headgate|instances of Headgate): 127\.0\.0\.1:(\d+)", text)[1] for text in said]
            self.assertNotEqual(ports[0], ports[1])
        self.assertEqual(os.listdir(self.folder), [])

    def test_invalid_words_are_refused_before_anything_starts(self):
        for words in (("--store", "etcd"), ("--port", "80"), ("--port", "0999"), ("--port", "$(id)"), ("--what",)):
            refused = run(self.EXAMPLE, *words, env=self.env)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), words)
            if words[0] == "--port":
                self.assertEqual(refused.stderr, f"run: --port {words[1]}\nhint: write a whole number from 1024 to 65531\n")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_port_that_is_taken_is_named_before_anything_starts(self):
        with socket.create_server(("127.0.0.1", free_port())) as server:
            port = server.getsockname()[1]
            refused = run(self.EXAMPLE, "--port", f"0{port}", "--check", env=self.env)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn(f"run: another server listens on 127.0.0.1:{port}\nhint:", refused.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class SidecarExample(unittest.TestCase):
    EXAMPLE = os.path.join(ROOT, "examples/sidecar/run")

    def test_the_shares_are_those_of_the_worked_example(self):
        env = {**os.environ, "HEADGATE_BINARY": os.path.abspath(BINARY)}
        done = run(self.EXAMPLE, "--cycle", "4", env=env, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = re.findall(r"^ +\d+ +(\d+) .*? (\d+) \(.*? (\d+) \(.*? (\d+) \(.* (\d+)$", done.stdout, re.MULTILINE)
        # docs/reference/algorithms.md
        shares = [("10", "10", "10", "10"), ("5", "15", "10", "10"), ("3", "11", "16", "10"), ("1", "12", "22", "5")]
        self.assertEqual(rows, [(*row, "40") for row in shares])

    def test_without_python_it_says_what_to_install(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        os.symlink(shutil.which("bash"), os.path.join(folder, "bash"))
        done = run(self.EXAMPLE, env={"PATH": folder})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "run: python3 is missing\nhint: sudo apt-get install python3\n")

    def test_invalid_words_are_refused(self):
        for words in (("--cycle", "0"), ("--cycle", "x"), ("--what",)):
            self.assertEqual(run(self.EXAMPLE, *words).returncode, 2, words)
        missing = run(self.EXAMPLE, env={**os.environ, "HEADGATE_BINARY": "/nowhere"})
        self.assertEqual((missing.returncode, "hint:" in missing.stderr), (1, True))


class Dashboards(unittest.TestCase):
    """Every metric, label and value of a label that examples/grafana names is in docs/reference/metrics.md."""

    def metrics(self):
        rows = Commands.lines("docs/reference/metrics.md")
        cells = [[cell.strip() for cell in row.split("|")] for row in rows if row.startswith("| `headgate_")]
        return {row[1].strip("`"): (re.findall(r"`(\w+)`", row[4]), row[5]) for row in cells}

    def expressions(self):
        with open(os.path.join(ROOT, "examples/grafana/sidecar-dashboard.json"), encoding="utf-8") as file:
            for panel in json.load(file)["panels"]:
                yield from (target["expr"] for target in panel["targets"])
        yield from (line.split("expr: ")[1] for line in Commands.lines("examples/grafana/sidecar-alerts.yaml") if "expr: " in line)

    def test_what_they_show_exists(self):
        metrics = self.metrics()
        of_prometheus = {"instance", "le"}
        count = 0
        for expression in self.expressions():
            labels = set()
            for name, selector in re.findall(r"(headgate_\w+)(\{[^}]*\})?", expression):
                count += 1
                name = name.removesuffix("_bucket")
                self.assertIn(name, metrics, expression)
                labels |= set(metrics[name][0]) | of_prometheus
                for label, values in re.findall(r'(\w+)=~?"([^"]*)"', selector):
                    self.assertIn(label, metrics[name][0] + ["instance"], expression)
                    for value in [] if "$" in values else values.split("|"):
                        self.assertRegex(metrics[name][1], rf"\b{value}\b", expression)
            for grouped in re.findall(r"by \(([^)]*)\)", expression):
                self.assertLessEqual(set(grouped.split(", ")), labels, expression)
        self.assertGreater(count, 25)

    def firing(self, *series):
        """The alerts that fire after an hour of these series, which grow by these steps each minute."""
        require("promtool")
        names = [line.split("alert: ")[1].strip() for line in Commands.lines("examples/grafana/sidecar-alerts.yaml") if "alert: " in line]
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": f"0+{growth}x60"} for name, growth in series],
            # It fails for each alert that fires, and names it.
            "alert_rule_test": [{"eval_time": "1h", "alertname": name, "exp_alerts": []} for name in names],
        }
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"rule_files": [os.path.join(ROOT, "examples/grafana/sidecar-alerts.yaml")], "tests": [test]}, file)
            done = run("promtool", "test", "rules", path)
        return set(re.findall(r"alertname: (\w+),", done.stdout + done.stderr))

    def test_refusals_of_rules_raise_the_alert(self):
        requests = 'headgate_proxy_requests_total{instance="a",outcome="%s"}'
        share = 'headgate_share_requests_total{instance="a",client="%s",outcome="%s"}'
        self.assertEqual(self.firing((requests % "answered", 1000), (requests % "refused", 5)), set())
        by_rule = (requests % "answered", 1000), (requests % "refused", 20), (share % ("ann", "allowed"), 1000)
        self.assertEqual(self.firing(*by_rule), {"HeadgateRejecting"})
        self.assertEqual(self.firing((share % ("ann", "allowed"), 1), (share % ("ann", "rejected"), 2)), {"HeadgateClientRejected"})
        self.assertEqual(self.firing((share % ("", "allowed"), 1), (share % ("", "rejected"), 2)), set(), "it is no client")


class Commands(unittest.TestCase):
    """Runs the commands that README.md, docs/start.md and the examples tell people to type."""

    @staticmethod
    def lines(path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            return file.read().splitlines()

    def test_the_commands_in_example_rules_end_as_documented(self):
        count = 0
        for name in sorted(os.listdir(os.path.join(ROOT, "examples/rules"))):
            lines = [line.removeprefix("#") for line in self.lines(f"examples/rules/{name}")]
            for line, result in zip(lines, lines[1:]):
                if line.startswith(f"   {HEADGATE} "):
                    done = run(os.path.abspath(BINARY), *shlex.split(line)[1:], cwd=ROOT)
                    self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, result.strip()), line)
                    count += 1
        self.assertGreaterEqual(count, 3)

    def test_the_examples_in_the_table_of_fronts_can_be_run(self):
        rows = [line for line in self.lines("README.md") if line.startswith("| ")]
        named = [re.findall(r"`(examples/\S+/run)", row) for row in rows]
        self.assertEqual(len(sum(named, [])), 3)
        for path in sum(named, []):
            self.assertTrue(os.access(os.path.join(ROOT, path), os.X_OK), path)

    def test_the_commands_of_the_first_pages_work_in_the_repository_folder(self):
        typed = [line[2:] for page in ("README.md", "docs/start.md") for line in self.lines(page) if line.startswith("$ ")]
        self.assertFalse([line for line in typed if line.startswith("headgate ")], "the binary is called in the same way everywhere")
        with Headgate("--rules", os.path.join(ROOT, "examples/rules")) as server:
            for line in typed:
                words = shlex.split(line.replace(":8080", f":{server.port}").replace("-p 8080", f"-p {server.port}"))
                if words[0] == HEADGATE:
                    words[0] = os.path.abspath(BINARY)
                    if words[1] == "check":
                        words[2:2] = ["--server", f"127.0.0.1:{server.port}"]
                    if words[1] == "serve":
                        words.append("--print-config")
                elif words[0] in ("curl", "redis-cli"):
                    require(words[0])
                else:
                    self.assertTrue(os.access(os.path.join(ROOT, words[0]), os.X_OK), line)
                    continue
                done = run(*words, cwd=ROOT)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")

    def test_commands_printed_by_the_development_script_can_be_pasted(self):
        # Calls the script's own functions, with the binary in the place where the script looks for
        # it.
        script = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "a folder", "dev")
        os.makedirs(os.path.join(os.path.dirname(script), "build/release/bin"))
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(os.path.dirname(script), "examples"))
        os.symlink(os.path.abspath(BINARY), os.path.join(os.path.dirname(script), HEADGATE))
        with open(os.path.join(ROOT, "dev"), encoding="utf-8") as file:
            text = file.read()
        with open(script, "w", encoding="utf-8") as file:
            file.write(text[: text.index('case "${1:-}" in\n  run |')] + 'print_hints "$1"\n')
        with Headgate("--rules", os.path.join(ROOT, "examples/rules")) as server:
            printed = run("bash", script, f"127.0.0.1:{server.port}").stdout
            commands = [line for line in printed.splitlines() if line.startswith("  ")]
            self.assertEqual(len(commands), 5, printed)
            for command in commands:
                require(shlex.split(command)[0])
                done = run("bash", "-c", command, cwd="/")
                self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    unittest.main()
