"""`./dev run`, as the first command of a newcomer: what it checks and says before it installs and compiles anything, and
what it prints once the server listens. Packages and the compiler are stand-ins that note how they were called."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import BINARY, free_port, log_file, require_redis, run, text_of, until

ROOT = os.getcwd()
STAND_INS = {
    "cmake": """echo "cmake $*" >>"$NOTES"
        case $1 in --build) mkdir -p build/release/bin && ln -sf "$BINARY" build/release/bin/headgate && echo '[1/1] Linking' ;; esac""",
    "apt-get": """echo "apt-get $*" >>"$NOTES"
        case $* in *--assume-no*) echo '0 upgraded, 63 newly installed, 0 to remove and 0 not upgraded.
Need to get 9,432 kB/145 MB of archives.
After this operation, 640 MB of additional disk space will be used.
Do you want to continue? [Y/n] N' && exit 1 ;; esac""",
    "dpkg-query": """case " $MISSING " in *" ${*: -1} "*) exit 1 ;; *) echo 'install ok installed' ;; esac""",
    "id": "echo 0",
    "nproc": "echo 2",
}


class DevRun(unittest.TestCase):
    def setUp(self):
        self.tree = self.enterContext(tempfile.TemporaryDirectory())
        tables = ("headgate/app/settings/settings_table.cc", "headgate/app/settings/sidecar_table.cc")
        for path in ("dev", *tables, "CMakeLists.txt", "CMakePresets.json"):
            os.makedirs(os.path.dirname(os.path.join(self.tree, path)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, path), os.path.join(self.tree, path))
        os.mkdir(os.path.join(self.tree, "cmake"))
        shutil.copytree(os.path.join(ROOT, "examples/rules"), os.path.join(self.tree, "examples/rules"))
        self.notes = os.path.join(self.tree, "notes")
        tools = os.path.join(self.tree, "tools")
        os.mkdir(tools)
        for name, text in STAND_INS.items():
            path = os.path.join(tools, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(path, 0o755)
        self.env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NOTES": self.notes,
                    "BINARY": os.path.abspath(BINARY), "MISSING": ""}

    def dev(self, *options, **env):
        return run(os.path.join(self.tree, "dev"), "run", *options, env={**self.env, **env})

    def called(self):
        """The stand-ins for packages and the compiler that were called."""
        if not os.path.exists(self.notes):
            return []
        with open(self.notes, encoding="utf-8") as file:
            return file.read().splitlines()

    def start(self, *options):
        """Starts it as a shell does, as a group of its own; ends the group after the test."""
        output = self.enterContext(log_file())
        words = [os.path.join(self.tree, "dev"), "run", "--admin-listen", "none", *options]
        process = subprocess.Popen(words, stdout=output, stderr=output, env=self.env, start_new_session=True)

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

        self.addCleanup(end)
        return process, lambda: text_of(output)

    def test_every_flag_of_the_server_is_known_before_it_is_compiled(self):
        flags = re.findall(r"^  (--[a-z-]+)", run(BINARY, "help", "serve", "--all").stdout, re.MULTILINE)
        self.assertGreater(len(flags), 60)
        for flag in [*flags, "--config", "--print-config", "--json"]:
            refused = self.dev(flag, "--no-such-flag=1")
            self.assertIn("'--no-such-flag=1'", refused.stderr, flag)
            # Whether it can stand alone.
            alone = self.dev(flag, "--listen")
            lacks = "needs a value" in run(BINARY, "serve", flag, "--print-config").stderr
            self.assertEqual(alone.stderr.splitlines()[0], f"dev: {flag if lacks else '--listen'} needs a value")
        self.assertEqual(self.called(), [])

    def test_a_wrong_option_is_refused_before_anything_is_installed_or_compiled(self):
        an_address = "HOST:PORT, such as 127.0.0.1:8082, or unix:PATH"
        all_options = "docs/reference/configuration.md lists all options"
        for options, error, hint in (
            (("--port", "9090"), "unknown option '--port'", "--listen 127.0.0.1:9090"),
            (("--port=9090",), "unknown option '--port=9090'", "--listen 127.0.0.1:9090"),
            (("--host", "0.0.0.0"), "unknown option '--host'", "--listen 0.0.0.0:8080"),
            (("--threads", "2", "--listn", ":80"), "unknown option '--listn'", all_options),
            (("--list.n", ":80"), "unknown option '--list.n'", all_options),
            (("9090",), "unknown argument '9090'", all_options),
            (("--threads=2", "9090"), "unknown argument '9090'", all_options),
            (("--listen",), "--listen needs a value", all_options),
            (("--listen", ":abc"), "':abc' is not an address", an_address),
            (("--listen=localhost:99999",), "'localhost:99999' is not an address", an_address),
            (("--admin-listen", "9090"), "'9090' is not an address", an_address),
            (("--rules", "/nonexistent"), "/nonexistent does not exist", "--rules names a file or a folder"),
            (("--config=/nonexistent.yaml",), "/nonexistent.yaml does not exist", "--config names a file or a folder"),
        ):
            for more in ((), ("--store", "redis")):
                refused = self.dev(*more, *options, MISSING="g++")
                self.assertEqual((refused.returncode, refused.stdout, refused.stderr), (2, "", f"dev: {error}\nhint: {hint}\n"))
        self.assertEqual(self.called(), [])
        self.assertIn("./dev run [OPTIONS]", self.dev("--help").stdout)

    def test_a_wrong_value_is_refused_by_a_program_that_is_up_to_date(self):
        binary = os.path.join(self.tree, "build/release/bin/headgate")
        os.makedirs(os.path.dirname(binary))
        shutil.copy(BINARY, binary)
        refused = self.dev("--threads", "many", MISSING="g++")
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"error: --threads: .*many")
        self.assertEqual(self.called(), [])
        # A source has changed since, so the program may know other values.
        table = os.path.join(self.tree, "headgate/app/settings/settings_table.cc")
        os.utime(table, (os.stat(binary).st_mtime + 10,) * 2)
        self.assertEqual(self.dev("--threads", "many").returncode, 2)
        self.assertIn("cmake --build --preset release --target headgate", self.called())

    def test_an_address_that_is_taken_is_one_line_before_anything_is_compiled(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            for options, flag in (
                (("--listen", f"127.0.0.1:{port}"), "--listen"),
                ((f"--listen=:{port}",), "--listen"),
                (("--listen-http", f"tls:127.0.0.1:{port}?fields=none"), "--listen"),
                (("--listen", "127.0.0.1:0", "--admin-listen", f"127.0.0.1:{port}"), "--admin-listen"),
            ):
                refused = self.dev(*options)
                self.assertEqual(refused.returncode, 3)
                self.assertRegex(refused.stderr, rf"^dev: \S*:{port}\S* is in use: another program listens there, perhaps another Headgate\n"
                                 rf"hint: stop it, or choose another address: ./dev run {flag} 127\.0\.0\.1:\d+\n$")
        self.assertEqual(self.called(), [])

    def test_the_cost_is_said_first(self):
        cost = "dev: installs 63 packages (9,432 kB to download, 640 MB on disk), then compiles for about "
        first = self.dev("--print-config", MISSING="g++ curl")
        self.assertIn(cost, first.stderr)
        self.assertRegex(first.stderr, r"compiles for about \d+ min on this machine's 2 cores\n")
        called = self.called()
        self.assertEqual(called[0], "apt-get update -q")
        self.assertEqual(called[1], "apt-get install --assume-no --no-install-recommends g++ curl")
        self.assertRegex(called[2], "^apt-get install -y -q .* g++ curl$".replace("+", r"\+"))
        self.assertEqual(called.count("apt-get update -q"), 1)
        self.assertLess(first.stderr.index("dev: installs"), first.stderr.index("+ env"))
        self.assertLess(first.stderr.index("dev: installs"), first.stderr.index("+ cmake"))
        self.assertNotIn("dev:", self.dev("--print-config").stderr, "everything is there")

    def test_what_to_try_is_printed_once_the_server_listens(self):
        process, said = self.start("--listen", "127.0.0.1:0")
        until(lambda: "Ctrl-C ends Headgate" in said(), 20, "the hints are printed")
        text = said()
        port = re.search(r"^listening on 127\.0\.0\.1:(\d+)$", text, re.MULTILINE).group(1)
        self.assertLess(text.index("[1/1] Linking"), text.index("listening on"))
        self.assertLess(text.index("listening on"), text.index("Paste these"))
        for command in (rf"redis-cli -p {port} CL\.THROTTLE .*", rf"curl -i 127\.0\.0\.1:{port}/v1/check .*", r"\S+/headgate check --server .*",
                        r"\S+/headgate explain .*", r"curl \S+/metrics"):
            pasted = run("bash", "-c", re.search(rf"^  ({command})$", text, re.MULTILINE).group(1), cwd="/")
            self.assertEqual(pasted.returncode, 0, pasted.stderr)
        os.killpg(process.pid, signal.SIGINT)  # Ctrl-C
        self.assertEqual(process.wait(20), 0)
        until(lambda: "server.stopped" in said(), 5, "Headgate has stopped")

    def test_nothing_to_try_is_printed_if_the_server_ends(self):
        broken = os.path.join(self.tree, "examples/rules/broken.yaml")
        with open(broken, "w", encoding="utf-8") as file:
            file.write("domain: [\n")
        ended = self.dev("--listen", f"127.0.0.1:{free_port()}")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("broken.yaml", ended.stderr)
        self.assertEqual(ended.stdout, "[1/1] Linking\n")

    def start_with_redis(self):
        """Returns the process, and its output up to the hints."""
        require_redis()
        process, said = self.start("--listen", "127.0.0.1:0", "--store", "redis")
        until(lambda: "The buckets are in a Redis" in said() and "--admin-listen none\n\n" in said(), 20, "the hints are printed")
        return process, said()

    def test_with_a_redis_of_its_own(self):
        process, text = self.start_with_redis()
        self.assertLess(text.index("Paste these"), text.index("The buckets are in a Redis"))
        check = re.search(r"^  (redis-cli -p \d+ CL\.THROTTLE .*)$", text, re.MULTILINE).group(1)
        self.assertEqual(run("bash", "-c", check).returncode, 0)
        keys = re.search(r"^  (redis-cli -p (\d+) KEYS .*)$", text, re.MULTILINE)
        until(lambda: "hg:" in run("bash", "-c", keys.group(1)).stdout, 10, "a bucket is in Redis")
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(20), 0)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", int(keys.group(2)))).close()

    def test_ends_as_usual_if_its_redis_ended_before(self):
        self.env["TMPDIR"] = os.path.join(self.tree, "temporary")
        os.mkdir(self.env["TMPDIR"])
        process, text = self.start_with_redis()
        redis = re.search(r"^  (redis-cli -p \d+) KEYS .*$", text, re.MULTILINE).group(1)
        run("bash", "-c", f"{redis} SHUTDOWN NOSAVE")
        until(lambda: run("bash", "-c", f"{redis} PING").returncode != 0, 10, "Redis has ended")
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(20), 0)
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [], "nothing is left behind")


if __name__ == "__main__":
    unittest.main()
