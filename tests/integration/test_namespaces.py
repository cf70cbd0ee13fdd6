"""If a step of making network namespaces is refused, the tests that need them are skipped with the
reason."""

import os
import tempfile
import unittest
from unittest import mock

from namespaces import Network

# A fake `ip` that counts its calls in a file and fails at the call whose number is in REFUSED.
FAKE_IP = """#!/bin/sh
echo >>"$CALLS"
[ "$(wc -l <"$CALLS")" -ne "$REFUSED" ] || { echo "step $REFUSED: Operation not permitted" >&2; exit 1; }
"""


class RefusedSetUp(unittest.TestCase):
    def network(self, refused):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(os.path.join(folder, "ip"), "w", encoding="utf-8") as file:
            file.write(FAKE_IP)
        os.chmod(file.name, 0o755)
        fake = {"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": os.path.join(folder, "calls"), "REFUSED": str(refused)}
        # Entering a namespace needs the kernel, which this test replaces, and root.
        as_root = mock.patch.object(os, "geteuid", return_value=0)
        with as_root, mock.patch.dict(os.environ, fake), mock.patch.object(Network, "inside"):
            network = Network("a", "b")
            network.join("a", "b")

    def test_each_refused_step_skips_with_its_reason(self):
        # Four calls for each namespace, then seven for the cable.
        for step in range(1, 16):
            with self.assertRaisesRegex(unittest.SkipTest, f"impossible here: no network namespaces: .*step {step}: Operation not permitted"):
                self.network(step)
        self.network(16)

    def test_a_namespace_that_cannot_be_entered_skips_too(self):
        with mock.patch.object(os, "geteuid", return_value=0), mock.patch.object(Network, "_ip"), self.assertRaisesRegex(unittest.SkipTest, "impossible here: no network namespaces: .*No such file"):
            Network("a")

    def test_without_root_it_is_root_that_is_missing(self):
        with mock.patch.object(os, "geteuid", return_value=1000), mock.patch.object(Network, "_ip"):
            with self.assertRaisesRegex(unittest.SkipTest, "^network namespaces need root$"):
                Network("a")


if __name__ == "__main__":
    unittest.main()
