"""Stopping, crashing and starting again."""

import os
import signal
import stat
import tempfile
import threading
import unittest

from harness import Headgate, until


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

    def test_a_crash_loses_at_most_what_came_since_the_last_snapshot(self):
        with self.start("--snapshot-interval", "100ms") as server:
            server.check(user="ann", cost=7)
            size = until(lambda: os.path.exists(self.snapshot) and os.path.getsize(self.snapshot), 5, "a snapshot")
            # Two more of them: the first may have been begun before the request.
            for _ in range(2):
                before = os.stat(self.snapshot).st_mtime_ns
                until(lambda b=before: os.stat(self.snapshot).st_mtime_ns != b, 5, "another snapshot")
            self.assertGreater(size, 0)
            self.assertEqual(server.stop(signal.SIGKILL), -signal.SIGKILL)
        with self.start() as server:
            self.assertEqual(server.check(user="ann", cost=0)[2]["decisions"][0]["remaining"], 3)

    def test_a_damaged_snapshot_is_refused_kept_and_counted_and_the_start_goes_on(self):
        with self.start() as server:
            server.check(user="ann", cost=7)
            server.stop()
        with open(self.snapshot, "rb") as file:
            whole = file.read()
        newer = whole[:8] + b"\x63" + whole[9:]
        for damaged, said, result in (
            (whole[:-5], "truncated", "corrupt"),
            (whole[:20] + b"?" + whole[21:], "corrupt", "corrupt"),
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


if __name__ == "__main__":
    unittest.main()
