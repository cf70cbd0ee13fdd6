"""The command line, as a person or a script uses it: output and exit codes."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import BINARY, Headgate, free_port, run, until, wait


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
        for words in (["--help"], ["help", "serve"], ["serve", "--help"]):
            result = headgate(*words)
            self.assertEqual(result.returncode, 0)
            self.assertLessEqual(result.stdout.count("\n"), 40, words)
        result = headgate("--help")
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

    def test_explain_names_the_matching_rule_and_the_reason(self):
        rules = self.write("r.yaml", "domain: d\ndescriptors:\n  - key: k\n    value: gold\n    rate_limit: {unit: second, requests_per_unit: 7}\n")
        result = headgate("explain", "--rules", rules, "d", "k=gold")
        self.assertEqual(result.returncode, 0)
        self.assertIn("k_gold", result.stdout)
        self.assertIn("7", result.stdout)

    def test_reading_long_files_shows_on_a_terminal(self):
        rules = "".join(f"  - key: k\n    value: v{i}\n    rate_limit: {{unit: second, requests_per_unit: 7}}\n" for i in range(190_000))
        path = self.write("long.yaml", "domain: d\ndescriptors:\n" + rules)
        for words in (("validate", path), ("check", "--rules", path, "d", "k=v1"), ("explain", "--rules", path, "d", "k=v1")):
            terminal, process_end = pty.openpty()
            process = subprocess.Popen([BINARY, *words], stdout=subprocess.DEVNULL, stderr=process_end)
            os.close(process_end)
            # A fast machine reads them in less than a second.
            wait(0.15)
            process.send_signal(signal.SIGSTOP)
            wait(1.2)
            process.send_signal(signal.SIGCONT)
            process.wait(120)
            shown = b""
            try:
                while part := os.read(terminal, 4096):
                    shown += part
            except OSError:  # EIO at the end
                pass
            os.close(terminal)
            self.assertEqual(process.returncode, 0, shown)
            self.assertTrue(shown.startswith(b"   1s  reading the rules\r\n"), (words, shown))
        self.assertEqual(headgate("validate", path, timeout=120).stderr, "", "no terminal")

    def test_forward_auth_without_mappings_says_what_is_missing(self):
        with Headgate("--rule", "user: 1/hour") as server:
            status, _, problem = server.request("GET", "/auth/x", headers={"Host": "shop.example"})
            self.assertEqual(status, 404)
            self.assertIn("--auth-header", problem)

    def test_scenario_reports_the_difference(self):
        lines = ["rule login = 1 per 10s burst 5", "at 0s login:ann x5 allow remaining 0", "at 0s login:ann deny retry 10s"]
        self.assertEqual(headgate("scenario", self.write("a.scenario", "\n".join(lines) + "\n")).returncode, 0)
        wrong = self.write("b.scenario", "\n".join([*lines[:2], "at 0s login:ann deny retry 9s"]) + "\n")
        result = headgate("scenario", wrong)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout + result.stderr, r"b\.scenario:3.*9s.*10s")

    def test_print_config_names_the_source_of_each_value(self):
        config = self.write("headgate.yaml", "max_buckets: 1234\n")
        result = headgate("serve", "--config", config, "--threads", "1", "--print-config",
                          env={**os.environ, "HEADGATE_SNAPSHOT": "/tmp/s"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"max_buckets.*1234.*headgate\.yaml")
        self.assertRegex(result.stdout, r"threads.*1.*--threads")
        self.assertRegex(result.stdout, r"snapshot.*/tmp/s.*HEADGATE_SNAPSHOT")


    def test_the_output_of_print_config_works_from_another_folder(self):
        rules = self.write("r.yaml", "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: second, requests_per_unit: 7}\n")
        config = self.write("headgate.yaml", f"rules: [{os.path.basename(rules)}]\ncredential: hunter2\nlisten: ['unix:here.sock']\n")
        printed = headgate("serve", "--config", config, "--print-config")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertNotIn("hunter2", printed.stdout)
        elsewhere = self.enterContext(tempfile.TemporaryDirectory())
        copy = os.path.join(elsewhere, "copy.yaml")
        with open(copy, "w", encoding="utf-8") as file:
            file.write(printed.stdout)
        with Headgate("--config", copy) as server:
            self.assertEqual(server.check("d", k="x")[2]["decisions"][0]["limit"], 7)
            # The credential is commented out; the local machine does not need one.
            self.assertEqual(server.request("GET", "/v1/rules")[0], 200)
        self.assertIn(f"settings.loaded file={copy}", self.finished("serve", "--config", copy, "--listen", "127.0.0.1:0"))

    def finished(self, *words, env=None):
        """The log of a server that is stopped at once."""
        server = subprocess.Popen([BINARY, *words, "--admin-listen", "none"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.assertIn("listening on", server.stdout.readline())
        server.terminate()
        return server.communicate(timeout=20)[1]

    def test_a_snapshot_is_written_through_a_symbolic_link(self):
        target, link = os.path.join(self.folder, "target"), os.path.join(self.folder, "link")
        os.symlink("target", link)
        for _ in range(2):  # the link first has no target, then the last snapshot
            self.finished("serve", "--listen", "127.0.0.1:0", "--snapshot", link)
            self.assertTrue(os.path.islink(link))
            self.assertTrue(os.path.isfile(target))
        self.assertEqual(sorted(os.listdir(self.folder)), ["link", "target"])

    def test_problems_of_rules_name_the_settings_file(self):
        self.write("r.yaml", "domain: d\nx: 1\n")
        config = self.write("headgate.yaml", "threads: 1\nrules: [r.yaml]\n")
        result = headgate("serve", "--config", config)
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"error: {config}:2:9: the rules of {os.path.join(self.folder, 'r.yaml')} cannot be loaded\n", result.stderr)

    def test_check_distinguishes_an_unready_server_from_an_unreachable_one(self):
        rules = os.path.join(self.folder, "rules.d")
        os.mkdir(rules)
        with Headgate("--rules", rules) as server:
            undecided = headgate("check", "--server", f"127.0.0.1:{server.port}", "user=ann")
            self.assertEqual(undecided.returncode, 5, undecided.stderr)
            self.assertIn("cannot decide now (503): no rate limit configuration loaded", undecided.stderr)
            self.assertNotIn("start one", undecided.stderr)

    def test_a_misspelt_variable_is_an_error_but_a_variable_of_kubernetes_is_ignored(self):
        wrong = headgate("serve", "--print-config", env={**os.environ, "HEADGATE_IDEL_TIMEOUT": "1m"})
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("hint: did you mean 'HEADGATE_IDLE_TIMEOUT'?", wrong.stderr)
        service = {"HEADGATE_SERVICE_HOST": "10.0.0.1", "HEADGATE_PORT": "tcp://10.0.0.1:80", "HEADGATE_PORT_80_TCP_ADDR": "10.0.0.1"}
        self.assertEqual(headgate("serve", "--print-config", env={**os.environ, **service}).returncode, 0)

    def test_a_unix_socket_has_the_mode_that_is_asked_for(self):
        for mode in (0o600, 0o660, 0o666):
            path = os.path.join(self.folder, f"{mode:o}.sock")
            words = (BINARY, "serve", "--admin-listen", "none", "--listen", f"unix:{path}?mode={mode:04o}")
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
                self.assertEqual(server.stdout.readline(), f"listening on unix:{path}\n")
                self.assertEqual(os.stat(path).st_mode & 0o777, mode)
                server.terminate()
        for address, message in (
            ("127.0.0.1:0?mode=0660", "only a Unix socket has a mode"),
            ("unix:s?mode=0999", "'0999' is not a mode"),
            ("unix:s?mode=7777", "'7777' is not a mode"),
            ("unix:s?mode=", "'' is not a mode"),
            ("unix:s?color=red", "a listener has no setting 'color'; it has: fields, mode, proxy_from"),
            ("127.0.0.1:0?proxy_from=ten", "'ten' is not a network"),
            ("127.0.0.1:0?fields=draft&fields=github", "fields comes twice"),
        ):
            result = run(BINARY, "serve", "--listen", address)
            self.assertEqual(result.returncode, 2, address)
            self.assertIn(message, result.stderr)

    def test_with_the_address_of_one_protocol_no_other_address_is_opened(self):
        path = os.path.join(self.folder, "resp.sock")
        server = subprocess.Popen([BINARY, "serve", "--listen-resp", f"unix:{path}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), f"listening on unix:{path}\n")
        until(lambda: answers(path), 10, "it answers")
        server.terminate()
        self.assertEqual(server.communicate(timeout=20)[0], "", "no other address was announced")

    def test_a_rule_problem_is_logged_with_its_hint_in_a_field(self):
        rules = self.write("r.yaml", "domain: d\n")
        with Headgate("--rules", rules) as server:
            self.write("r.yaml", "domain: d\nx: 1\n")
            until(lambda: "rules.problem_found" in server.errors(), 10, "the problem is logged")
            line = next(line for line in server.errors().splitlines() if "rules.problem_found" in line)
            self.assertIn("reason=\"", line)
            self.assertIn(" hint=\"see docs/reference/rules.md", line)
            self.assertNotIn("\\n", line)
            os.remove(rules)
            until(lambda: "cannot be read" in server.errors(), 10, "the file is missed")
            line = next(line for line in server.errors().splitlines() if "cannot be read" in line)
            self.assertIn(" hint=\"name a rule file", line)

    def test_check_names_the_domains_that_the_server_has_rules_in(self):
        rules = self.write("r.yaml", "domain: edge\ndescriptors:\n  - key: k\n    rate_limit: {unit: hour, requests_per_unit: 7}\n")
        with Headgate("--rules", rules) as server:
            address = ("--server", f"127.0.0.1:{server.port}")
            result = headgate("check", *address, "k=v")
            self.assertEqual((result.returncode, result.stdout), (0, "allowed  (no rule)\n"))
            self.assertIn('hint: the domain "default" has no rules; choose one that has, with --domain: "edge"', result.stderr)
            self.assertIn("6 left", headgate("check", *address, "edge", "k=v").stdout)

    def test_check_says_which_rules_there_are_and_its_hint_can_be_pasted(self):
        rules = self.write("it's.yaml", "domain: edge\ndescriptors:\n  - key: k\n    rate_limit: {unit: hour, requests_per_unit: 7}\n")
        with Headgate("--rules", rules) as server:
            result = headgate("check", "--server", f"127.0.0.1:{server.port}", "edge", "other=v")
            self.assertEqual((result.returncode, result.stdout), (0, "allowed  (no rule)\n"))
            self.assertEqual(result.stderr, 'hint: no rule of the domain "edge" applies; it has rules for: k\n')
        hint = headgate("check", "--rules", rules, "edge", 'other="a b"').stderr
        pasted = run("bash", "-c", hint.split("`")[1])
        self.assertEqual((pasted.returncode, pasted.stderr), (0, ""))
        self.assertIn("other", pasted.stdout)

    def test_check_says_that_the_store_did_not_decide(self):
        store = f"redis://127.0.0.1:{free_port()}"
        for policy, words in (("local", "by this instance's share of the limit"), ("allow", "so the request passes")):
            with Headgate("--rule", "k: 7/hour", "--store", store, "--on-store-failure", policy) as server:
                result = headgate("check", "--server", f"127.0.0.1:{server.port}", "k=v")
                self.assertEqual(result.returncode, 0)
                self.assertEqual(result.stderr, f"hint: decided without the shared store, {words} (on_store_failure: {policy}); "
                                 "the server's log has the reason\n")

    def test_a_server_that_misses_one_of_its_addresses_announces_none(self):
        with Headgate("--rule", "k: 7/hour") as server:
            taken = f"127.0.0.1:{server.port}"
            for addresses in (("--listen", taken), ("--listen", "127.0.0.1:0", "--admin-listen", taken)):
                for command in (("serve",), ("sidecar", "--upstream", "http://127.0.0.1:9", "--capacity", "40")):
                    result = headgate(*command, "--rule", "k: 7/hour", *addresses)
                    self.assertEqual((result.returncode, result.stdout), (3, ""))
                    said = [line for line in result.stderr.splitlines() if not re.match(r"\S+Z info ", line)]
                    self.assertEqual(len(said), 2, said)
                    self.assertTrue(said[0].startswith(f"error: cannot listen on {taken}: Address already in use"), said)
                    self.assertTrue(said[1].startswith("hint: "), said)

    def test_explain_and_validate_accept_every_form_of_input(self):
        rules = self.write("r.yaml", "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: second, requests_per_unit: 7}\n")
        text = headgate("explain", "--rules", rules, "d", "k=v").stdout
        self.assertEqual(headgate("explain", "--rules", rules, "--domain", "d", "k=v").stdout, text)
        self.assertEqual(json.loads(headgate("explain", "--json", "--rules", rules, "d", "k=v").stdout)["limits"], ["7 per 1s, fixed_window, count_denied"])

    def test_output_beyond_the_size_of_a_file_is_an_error(self):
        path = os.path.join(self.folder, "man")
        result = in_shell("ulimit -f 1", "headgate man >" + path)
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertIn("error: the output could not be written", result.stderr)
        self.assertEqual(os.path.getsize(path), 1024)

    def test_output_to_a_full_disk_or_a_closed_stdout_is_an_error(self):
        for place in (">/dev/full", ">&-"):
            for words in ("man", "version", "serve --print-config", "serve --help", "sidecar --help", "check --rule 'user: 1/hour' user=ann"):
                result = in_shell(f"headgate {words} {place}")
                self.assertEqual(result.returncode, 6, (words, place, result.stderr))
                self.assertIn("error: the output could not be written", result.stderr)

    def test_a_server_serves_without_its_standard_streams(self):
        path = os.path.join(self.folder, "socket")
        command = f"exec {BINARY} serve --listen unix:{path} --admin-listen none <&- >&- 2>&-"
        with subprocess.Popen(["bash", "-c", command]) as server:
            until(lambda: answers(path), 20, "the server answers")
            for number in range(3):  # no other file has got the number
                self.assertEqual(os.readlink(f"/proc/{server.pid}/fd/{number}"), "/dev/null")
            server.terminate()
            self.assertEqual(server.wait(timeout=20), 0)


def in_shell(*commands):
    """The last command instead of the shell, after the others in it."""
    *before, last = commands
    return run("bash", "-c", "; ".join([*before, "exec " + last.replace("headgate", BINARY, 1)]))


def answers(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
            client.sendall(b"PING\r\n")
            return client.recv(16) == b"+PONG\r\n"
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
