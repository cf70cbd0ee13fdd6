#!/usr/bin/env python3
"""The options of ./dev bare, and what it leaves behind, with programs in the place of debootstrap and
chroot that make an empty root and wait in it."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "bare_machine"
DEBOOTSTRAP = """#!/bin/sh
[ "$2" != unknown ] || { echo "E: No such script: unknown" >&2; exit 1; }
mkdir -p "$3/proc" "$3/sys" "$3/dev" "$3/srv" "$3/etc/apt/apt.conf.d"
echo "$@" >"$CALLS"
"""
# The first argument is the root.
CHROOT = """#!/bin/sh
echo "$1: $(grep -c " $1/" /proc/self/mounts) mounts, $(ls "$1/srv/headgate")" >>"$CALLS"
exec sleep 600
"""


class BareMachine(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        done = subprocess.run(("unshare", "--mount", "--pid", "--fork", "true"), capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"impossible here: no namespaces for mounts and processes: {done.stderr.strip()}")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.calls = self.folder / "calls"
        for name in ("source/tests", "programs", "tmp"):
            (self.folder / name).mkdir(parents=True)
        for name, text in (("debootstrap", DEBOOTSTRAP), ("chroot", CHROOT)):
            (self.folder / "programs" / name).write_text(text)
            (self.folder / "programs" / name).chmod(0o755)
        self.tool = shutil.copy(TOOL, self.folder / "source/tests")
        for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "All")):
            subprocess.run(("git", "-C", self.folder / "source", *words), check=True)
        self.env = {**os.environ, "TMPDIR": str(self.folder / "tmp"), "CALLS": str(self.calls),
                    "PATH": f"{self.folder}/programs:{os.environ['PATH']}"}

    def run_tool(self, *words):
        return subprocess.run((self.tool, *words), env=self.env, capture_output=True, text=True, timeout=60)

    def left_behind(self):
        mounts = pathlib.Path("/proc/mounts").read_text().splitlines()
        return list((self.folder / "tmp").iterdir()), [line for line in mounts if str(self.folder) in line]

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def started(self, *words):
        """Starts the tool, and returns its process once its command runs in the root."""
        tool = subprocess.Popen((self.tool, *words), env=self.env, stdout=subprocess.DEVNULL)
        self.addCleanup(tool.wait)
        self.addCleanup(tool.kill)
        self.wait_until(lambda: self.calls.exists() and "mounts" in self.calls.read_text(), "the command runs in the root")
        return tool

    def processes(self):
        """The processes in the root, as this machine sees them."""
        count = 0
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # it has ended, or is hidden
                count += f"CALLS={self.calls}".encode() in path.read_bytes()
        return count

    def test_a_signal_leaves_no_mount_no_process_and_no_folder(self):
        for number, word in ((signal.SIGTERM, "run"), (signal.SIGINT, "test"), (signal.SIGHUP, "run")):
            tool = self.started(word)
            called = self.calls.read_text()
            self.assertIn("tests", called, "the clone is there")
            self.assertRegex(called, r"root: ([3-9]|\d\d) mounts")
            tool.send_signal(number)
            self.assertEqual(tool.wait(30), {signal.SIGINT: 130}.get(number, 143))
            self.assertEqual(self.left_behind(), ([], []))
            self.wait_until(lambda: self.processes() == 0, "all processes have ended")
            self.calls.unlink()
        self.assertTrue(os.path.exists("/dev/null"))

    def test_even_when_it_is_killed_no_mount_and_no_process_stays(self):
        self.started("run").kill()
        self.wait_until(lambda: self.processes() == 0, "all processes have ended")
        self.assertEqual(self.left_behind()[1], [])

    def test_a_failure_is_reported_and_leaves_nothing(self):
        done = self.run_tool("--suite", "unknown")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No such script: unknown\nbare: debootstrap unknown from http://deb.debian.org/debian failed\nhint: ", done.stderr)
        self.assertEqual(self.left_behind(), ([], []))

    def test_the_options_reach_debootstrap(self):
        self.started("--suite", "trixie", "--mirror", "http://mirror/debian", "test").terminate()
        words = self.calls.read_text().split("\n")[0].split()
        self.assertEqual([words[1], words[3]], ["trixie", "http://mirror/debian"])

    def test_wrong_words_are_refused(self):
        for words in (("--what",), ("walk",), ("run", "--listen")):
            done = self.run_tool(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
        self.assertEqual(self.run_tool("--help").returncode, 0)

    def test_without_root_it_says_so(self):
        self.folder.chmod(0o755)
        done = subprocess.run((TOOL,), env=self.env, user=65534, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "bare: a root file system can only be made by root\nhint: sudo ./dev bare\n")


if __name__ == "__main__":
    unittest.main()
