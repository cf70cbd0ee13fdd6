#!/usr/bin/env python3
"""Runs passed_tests.py in a project of its own, with real git, CMake and ctest."""

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
        self.run_in_root("cmake", "-B", "build")
        self.assertEqual(self.skipped(), [])
        self.run_tests()

    def write(self, name, text):
        (self.root / name).write_text(text)

    def run_in_root(self, *command, check=True):
        return subprocess.run(command, cwd=self.root, check=check, capture_output=True, text=True).stdout

    def skipped(self):
        return self.run_in_root("tests/passed_tests.py", "skip", "build").split()

    def run_tests(self):
        self.run_in_root("ctest", "--test-dir", "build", "--output-junit", "tests.xml", check=False)
        self.run_in_root("tests/passed_tests.py", "record", "build")

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


if __name__ == "__main__":
    unittest.main()
