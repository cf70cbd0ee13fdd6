"""Stopping, crashing and starting again."""

import http.client
import os
import signal
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from harness import BINARY, Headgate, free_port, require, run, until


class Restart(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.snapshot = os.path.join(folder, "buckets.snapshot")
        self.args = ["--rule", "user: 10/hour", "--snapshot", self.snapshot]

    def start(self, *args):
        return Headgate(*self.args, *args)

    def test_a_stop_and_a_start_keep_the_counts(self):
        with self.start() as server:
            server.check(user="ann", cost=7)
            self.assertEqual(server.stop(signal.SIGTERM), 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.snapshot).st_mode), 0o600)
        with self.start() as server:
            self.assertEqual(server.check(user="ann", cost=0)[2]["decisions"][0]["remaining"], 3)

    def test_a_stop_and_a_start_keep_counters_and_their_expiry(self):
        with self.start() as server:
            for command in ("INCREX kept BYFLOAT -2.5", "INCREX minute BYINT 7 EX 60", "INCREX gone PX 1", "INCREX zero BYINT 0"):
                run("redis-cli", "-p", str(server.port), *command.split())
            self.assertEqual(server.stop(signal.SIGTERM), 0)
        with self.start() as server:
            script = "TTL kept\nTTL minute\nEXISTS gone zero\nINCREX kept BYFLOAT 0\nINCREX minute\n"
            lines = run("redis-cli", "-p", str(server.port), input=script).stdout.split("\n")[:-1]
        self.assertEqual(lines[0], "-1")
        self.assertTrue(50 <= int(lines[1]) <= 60, lines)
        self.assertEqual([line for line in lines[2:] if line], ["1", "-2.5", "0", "8", "1"])

    def test_a_crash_loses_at_most_the_requests_since_the_last_snapshot(self):
        with self.start("--snapshot-interval", "100ms") as server:
            server.check(user="ann", cost=7)
            size = until(lambda: os.path.exists(self.snapshot) and os.path.getsize(self.snapshot), 5, "a snapshot")
            # Waits for two more snapshots: the first may have begun before the request.
            for _ in range(2):
                before = os.stat(self.snapshot).st_mtime_ns
                until(lambda b=before: os.stat(self.snapshot).st_mtime_ns != b, 5, "another snapshot")
            self.assertGreater(size, 0)
            self.assertEqual(server.stop(signal.SIGKILL), -signal.SIGKILL)
        with self.start() as server:
            self.assertEqual(server.check(user="ann", cost=0)[2]["decisions"][0]["remaining"], 3)

    def test_a_damaged_snapshot_is_kept_and_counted_and_the_server_starts(self):
        with self.start() as server:
            server.check(user="ann", cost=7)
            server.stop()
        with open(self.snapshot, "rb") as file:
            whole = file.read()
        newer = whole[:8] + b"\x63" + whole[9:]
        for damaged, said, result in (
            (whole[:-5], "truncated", "corrupt"),
            (whole[:20] + bytes([whole[20] ^ 1]) + whole[21:], "corrupt", "corrupt"),
            (newer, "newer", "newer"),
        ):
            with open(self.snapshot, "wb") as file:
                file.write(damaged)
            with self.start() as server:
                self.assertIn(said, server.errors())
                self.assertEqual(server.check(user="ann", cost=0)[2]["decisions"][0]["remaining"], 10)
                metrics = server.request("GET", "/metrics")[2]
                self.assertIn(f'headgate_snapshot_restores_total{{result="{result}"}} 1', metrics)
                self.assertTrue(os.path.exists(self.snapshot + ".refused"))
                server.stop(signal.SIGKILL)

    def test_requests_in_flight_are_answered_before_the_end(self):
        with self.start() as server:
            answers = []

            def ask():
                try:
                    while True:
                        answers.append(server.check(user="bob", cost=0)[0])
                except OSError:
                    return

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            until(lambda: len(answers) > 50, 10, "some answers")
            self.assertEqual(server.stop(signal.SIGTERM), 0)
            for thread in threads:
                thread.join()
            self.assertEqual(set(answers), {200})


    def test_a_snapshot_that_cannot_be_written_is_an_error_at_start(self):
        folder = os.path.dirname(self.snapshot)
        file = os.path.join(folder, "file")
        open(file, "wb").close()
        for path, said in (
            (os.path.join(folder, "missing", "s"), f"hint: mkdir -p {folder}/missing"),
            (folder, "is a directory"),
            (os.path.join(file, "s"), "Not a directory"),
            ("/dev/null", "is not a regular file"),
        ):
            refused = run(BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", "--snapshot", path)
            self.assertEqual(refused.returncode, 2, path)
            self.assertIn(said, refused.stderr)
        self.assertEqual(os.listdir(folder), ["file"], "a directory in its place stays where it is")

    def test_a_stop_whose_snapshot_cannot_be_written_ends_with_4(self):
        folder = os.path.join(os.path.dirname(self.snapshot), "gone")
        os.mkdir(folder)
        with Headgate("--rule", "user: 10/hour", "--snapshot", os.path.join(folder, "s")) as server:
            os.rmdir(folder)
            self.assertEqual(server.stop(signal.SIGTERM), 4)
            self.assertIn("snapshot.write_failed", server.errors())

    def test_a_snapshot_larger_than_files_may_be_is_an_error_of_the_write(self):
        require("prlimit")
        limited = ("prlimit", f"--fsize={64 << 10}")
        with Headgate(*self.args, "--snapshot-interval", "1s", prefix=limited) as server:
            server.check(user="ann", cost=7)
            until(lambda: server.metric('headgate_snapshot_writes_total{result="written"}') >= 1, 10, "a small snapshot is written")
            script = "".join(f"CL.THROTTLE key{i} 1 1 3600\n" for i in range(5000))
            run("redis-cli", "-p", str(server.port), input=script)
            until(lambda: server.metric('headgate_snapshot_writes_total{result="failed"}') >= 1, 10, "a large one is not")
            self.assertRegex(server.errors(), r"snapshot\.write_failed .*File too large")
            self.assertEqual(server.check(user="ann", cost=0)[2]["decisions"][0]["remaining"], 3)
            self.assertLessEqual(os.path.getsize(self.snapshot), 64 << 10, "the small one is still there")
            self.assertFalse(os.path.exists(self.snapshot + ".new"))
            self.assertEqual(server.stop(signal.SIGTERM), 4)
        with self.start() as server:
            self.assertEqual(server.check(user="ann", cost=0)[2]["decisions"][0]["remaining"], 3)

    def test_an_earlier_damaged_snapshot_is_not_overwritten(self):
        for content in (b"first", b"second"):
            with open(self.snapshot, "wb") as file:
                file.write(content)
            with self.start() as server:
                server.stop(signal.SIGKILL)
        for name, content in ((".refused", b"first"), (".refused.2", b"second")):
            with open(self.snapshot + name, "rb") as file:
                self.assertEqual(file.read(), content)

    def test_during_the_drain_delay_only_readiness_fails(self):
        port = free_port()
        with self.start("--drain-delay", "1h", "--admin-listen", f"127.0.0.1:{port}", "--snapshot-interval", "100ms") as server:
            until(lambda: admin(port, "/readyz") == 200, 10, "the administration address answers")
            server.process.send_signal(signal.SIGTERM)
            until(lambda: admin(port, "/readyz") == 503, 10, "readiness fails")
            self.assertEqual(admin(port, "/healthz"), 200)
            self.assertEqual(admin(port, "/metrics"), 200)
            self.assertEqual(server.check(user="ann")[0], 200)
            # A reload signal does not shorten the drain delay.
            server.process.send_signal(signal.SIGHUP)
            written = os.stat(self.snapshot).st_mtime_ns if os.path.exists(self.snapshot) else 0
            until(lambda: os.path.exists(self.snapshot) and os.stat(self.snapshot).st_mtime_ns != written, 10, "snapshots continue")
            self.assertEqual(admin(port, "/readyz"), 503)
            # A second stop signal ends the wait.
            self.assertEqual(server.stop(signal.SIGTERM), 0)

    def test_a_reload_signal_while_it_starts_does_not_end_it(self):
        credential = os.path.join(os.path.dirname(self.snapshot), "credential")
        os.mkfifo(credential)
        command = (BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", "--credential-file", credential)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            # The server waits for the credential, long before it is ready.
            with open(credential, "w", encoding="ascii") as pipe:
                process.send_signal(signal.SIGHUP)
                pipe.write("s3cret\n")
            self.assertIn(b"listening on", process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=20), 0)

    def test_the_delay_ends_by_itself(self):
        with self.start("--drain-delay", "700ms") as server:
            began = time.monotonic()
            self.assertEqual(server.stop(signal.SIGTERM), 0)
            self.assertGreaterEqual(time.monotonic() - began, 0.7)


def admin(port, path):
    """The status, or None if there is no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


if __name__ == "__main__":
    unittest.main()
