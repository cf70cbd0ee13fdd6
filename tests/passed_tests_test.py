#!/usr/bin/env python3
"""Runs passed_tests.py in a project of its own, with real git, CMake and ctest."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "passed_tests.py"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(sample NONE)
enable_testing()
foreach(name data source)
  add_test(NAME ${name} COMMAND grep -q good ${CMAKE_SOURCE_DIR}/${name}.txt)
endforeach()
set_tests_properties(data PROPERTIES LABELS tests/integration)
set_tests_properties(source PROPERTIES LABELS tests)
"""
# Added to the project: a test that says OUTPUT and ends with CODE, with the property of such tests.
SKIPS = """
add_test(NAME skips COMMAND sh -c [==[printf '%s' 'OUTPUT'; exit CODE]==])
include("SOURCE/cmake/SkippedTests.cmake")
set_tests_properties(skips PROPERTIES SKIP_REGULAR_EXPRESSION "${HEADGATE_KIND_SKIPPED}")
"""


class PassedTests(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.root / "tests").mkdir()
        shutil.copy(TOOL, self.root / "tests")
        self.write("CMakeLists.txt", PROJECT)
        self.write(".gitignore", "/build/\n")
        self.write("data.txt", "good")
        self.write("source.txt", "good")
        self.write("a.cc", "int a;")
        self.run_in_root("git", "init", "-q")
        self.run_in_root("cmake", "-B", "build", "-G", "Ninja")
        self.assertEqual(self.skipped(), [])
        self.run_tests()

    def write(self, name, text):
        (self.root / name).write_text(text)

    def run_in_root(self, *command, check=True, env=None):
        # Only the tests of skips say themselves that they are in continuous integration.
        env = env or {name: value for name, value in os.environ.items() if name != "CI"}
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=env)
        if check:
            self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def skipped(self):
        return self.run_in_root("tests/passed_tests.py", "skip", "build").split()

    def run_tests(self):
        self.run_in_root("ctest", "--test-dir", "build", "--output-junit", "tests.xml", check=False)
        return self.run_in_root("tests/passed_tests.py", "record", "build")

    def test_a_test_that_has_passed_is_skipped(self):
        self.assertEqual(self.skipped(), ["data", "source"])

    def test_a_changed_file_of_data_makes_all_tests_run(self):
        self.write("new.txt", "not committed")
        self.assertEqual(self.skipped(), [])

    def test_a_changed_source_makes_the_tests_run_that_read_sources(self):
        self.write("a.cc", "int b;")
        self.assertEqual(self.skipped(), ["data"])

    def test_another_command_makes_its_test_run(self):
        self.write("build/CTestTestfile.cmake", (self.root / "build/CTestTestfile.cmake").read_text().replace("good", "goo", 1))
        self.assertEqual(self.skipped(), ["source"])

    def test_a_test_that_has_failed_runs_again(self):
        self.write("source.txt", "bad")
        self.assertEqual(self.skipped(), [])
        self.run_tests()
        self.assertEqual(self.skipped(), ["data"])

    def test_without_a_repository_every_test_runs(self):
        shutil.rmtree(self.root / ".git")
        self.assertEqual(self.skipped(), [])
        self.run_tests()

    def test_an_edit_while_tests_run_is_not_taken_for_tested(self):
        self.write("data.txt", "good 2")
        self.assertEqual(self.skipped(), [])
        self.write("data.txt", "good 3")
        self.run_tests()
        self.assertEqual(self.skipped(), [])

    def test_without_a_list_of_packages_every_test_runs(self):
        programs = self.root / "build/programs"
        programs.mkdir()
        for name in ("env", "python3", "git", "ctest"):
            (programs / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
        self.assertEqual(self.run_in_root("tests/passed_tests.py", "skip", "build", env={"PATH": str(programs)}).split(), [])

    def test_a_failure_beside_a_skip_is_no_skip(self):
        for kind, said in (
            ("PYTHON", "a ... skipped 'no x'\n\nFAILED (failures=1, skipped=1)\n"),
            ("GTEST", "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.C\n"),
        ):
            self.assertEqual(self.after_skip(kind, said, 1), ("", True))

    def after_skip(self, kind, said, code=0):
        """The output of `record` after a test that says this, and whether it passes in continuous integration."""
        text = SKIPS.replace("OUTPUT", said.replace("'", "'\\''")).replace("CODE", str(code))
        self.write("CMakeLists.txt", PROJECT + text.replace("SOURCE", str(TOOL.parent.parent)).replace("KIND", kind))
        self.run_in_root("cmake", "build")
        self.skipped()
        printed = self.run_tests()
        self.assertEqual(self.skipped(), ["data", "source"], "neither skipped nor failed tests have passed")
        done = subprocess.run((self.root / "tests/passed_tests.py", "record", "build"), cwd=self.root,
                              env={**os.environ, "CI": "true"}, capture_output=True, text=True)
        return printed, done.returncode == 0

    def test_a_skip_is_named_with_its_reason_and_fails_continuous_integration(self):
        of_python = "test_a (A.test_a) ... skipped %r\n\n----\nRan 1 test in 0.1s\n\nOK (skipped=1)\n"
        of_gtest = "a.cc:7: Skipped\n%s\n\n[  SKIPPED ] A.B (0 ms)\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n"
        for kind, said in (("PYTHON", of_python), ("GTEST", of_gtest)):
            self.assertEqual(self.after_skip(kind, said % "missing: promtool"), ("skipped: skips: missing: promtool\n", False))
            reason = "impossible here: no network namespaces"
            self.assertEqual(self.after_skip(kind, said % reason), (f"skipped: skips: {reason}\n", True))


if __name__ == "__main__":
    unittest.main()
