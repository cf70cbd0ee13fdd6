"""docs/guides/fleet.md states the same terms for each fault as faults.py, with a measured figure.
Every fault in the table of the simulator is also produced in real processes."""

import functools
import importlib
import os
import re
import unittest

from faults import FAULTS, rows_of
from harness import INTEGRATION

DOCS = os.path.join(INTEGRATION, "../../docs")


def page(name):
    with open(os.path.join(DOCS, name), encoding="utf-8") as file:
        return file.read()


class Terms(unittest.TestCase):
    def test_the_guide_states_them(self):
        rows = rows_of(page("guides/fleet.md"))
        stated = [(happens, on_top, refused) for happens, on_top, _, refused, _ in rows]
        self.assertEqual(stated, [(f.happens, f.on_top, f.refused) for f in FAULTS.values()])
        for happens, _, on_top, _, refused in rows:
            self.assertRegex(on_top, r"^\d", happens)
            self.assertRegex(refused, r"^\d", happens)

    def test_every_fault_that_the_simulator_knows_is_produced(self):
        text = page("internals/leases.md")
        begin = text.index("| what happens | adds at most |")
        rows = re.findall(r"^\| (.+?) \| .+ \|$", text[begin : text.index("\n\n", begin)], re.MULTILINE)[2:]
        self.assertGreater(len(rows), 10)
        self.assertEqual(set(rows), {row for fault in FAULTS.values() for row in fault.rows})

    def test_each_fault_is_measured_by_the_test_that_it_names(self):
        for name, fault in FAULTS.items():
            for test in fault.tests:
                module, *words = test.split(".")
                functools.reduce(getattr, words, importlib.import_module(module))
                with open(os.path.join(INTEGRATION, module + ".py"), encoding="utf-8") as file:
                    self.assertIn(f'"{name}"', file.read(), test)


if __name__ == "__main__":
    unittest.main()
