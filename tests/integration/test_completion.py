"""The completions in the real shells, and the manual page in the real groff."""

import os
import tempfile
import unittest

from harness import BINARY, require, run

# Answers what bash would complete behind the words.
BASH = """
source "$1"; shift
COMP_WORDS=(headgate "$@"); COMP_CWORD=$#
compopt() { :; }
_headgate
printf '%s\\n' "${COMPREPLY[@]}"
"""

# Prints what the function would hand to zsh's own.
ZSH = """
source "$1"; shift
_describe() { print -l -- ${(P)2}; }
_arguments() { print -l -- "$@"; }
words=(headgate "$@"); CURRENT=$(( $# + 1 ))
_headgate
"""

RULES_WORDS = ["list", "get", "put", "delete", "rollout", "history", "rollback", "confirm"]


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def script(self, shell):
        require(shell)
        path = os.path.join(self.folder, "script")
        result = run(BINARY, "completion", shell)
        self.assertEqual(result.returncode, 0)
        with open(path, "w", encoding="utf-8") as file:
            file.write(result.stdout)
        checked = run(shell, "-n", path)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        return path

    def bash(self, path, *words):
        result = run("bash", "--norc", "-c", BASH, "bash", path, *words, cwd=self.folder)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash_completes_commands_flags_values_and_paths(self):
        path = self.script("bash")
        self.assertEqual(self.bash(path, "se"), ["serve"])
        self.assertIn("hash-password", self.bash(path, ""))
        self.assertEqual(self.bash(path, "help", "expl"), ["explain"])
        self.assertEqual(self.bash(path, "serve", "--idle"), ["--idle-timeout"])
        self.assertEqual(self.bash(path, "check", "--pe"), ["--peek"])
        self.assertEqual(self.bash(path, "serve", "--log-level", "de"), ["debug"])
        self.assertEqual(self.bash(path, "serve", "--rules", "scr"), ["script"])
        self.assertEqual(self.bash(path, "serve", "--threads", ""), [], "a number cannot be completed")
        self.assertEqual(self.bash(path, "validate", "scr"), ["script"])
        self.assertEqual(self.bash(path, "completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.bash(path, "rules", ""), RULES_WORDS)

    def test_zsh_completes_commands_flags_values_and_paths(self):
        path = self.script("zsh")

        def zsh(*words):
            result = run("zsh", "-f", "-c", "compdef() { : }\n" + ZSH, "zsh", path, *words)
            self.assertEqual(result.stderr, "")
            return result.stdout.splitlines()

        self.assertIn("serve:answer whether requests may pass", zsh("se"))
        flags = zsh("serve", "--")
        self.assertIn("*--idle-timeout[The time without a request in progress.]:DURATION: ", [f.replace(f[f.find("[") :], "[The time without a request in progress.]:DURATION: ") if f.startswith("*--idle-timeout[") else f for f in flags])
        self.assertTrue(any(flag.startswith("*--rules[") and flag.endswith(":PATH:_files") for flag in flags), flags)
        self.assertTrue(any(flag.startswith("*--log-level[") and flag.endswith(":WORD:(debug info warning error)") for flag in flags), flags)
        self.assertEqual(zsh("completion", ""), ["*:word:(bash zsh fish)"])
        self.assertIn(f"*:word:({' '.join(RULES_WORDS)})", zsh("rules", ""))
        self.assertEqual(zsh("hash-password", ""), ["*:file:_files"])

    def test_fish_completes_commands_flags_and_values(self):
        path = self.script("fish")

        def fish(line):
            result = run("fish", "--no-config", "-c", f"source {path}; complete -C '{line}'")
            self.assertEqual(result.returncode, 0, result.stderr)
            return [line.split("\t")[0] for line in result.stdout.splitlines()]

        self.assertEqual(fish("headgate ser"), ["serve"])
        self.assertEqual(fish("headgate serve --idle"), ["--idle-timeout"])
        self.assertEqual(fish("headgate serve --log-level de"), ["debug"])
        self.assertIn("--peek", fish("headgate check --pe"))
        self.assertEqual(fish("headgate completion z"), ["zsh"])
        self.assertEqual(sorted(fish("headgate rules ")), sorted(RULES_WORDS))

    def test_another_shell_is_an_error(self):
        for words in ((), ("tcsh",), ("bash", "zsh")):
            result = run(BINARY, "completion", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("bash, zsh or fish", result.stderr)


class Manual(unittest.TestCase):
    def test_the_page_is_set_without_a_warning_and_has_every_command_and_setting(self):
        require("groff")
        page = run(BINARY, "man").stdout
        shown = run("groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-P-cbou", input=page)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        for word in ("headgate serve", "headgate check", "headgate completion", "--idle-timeout", "--users-file", "SEE ALSO"):
            self.assertIn(word, shown.stdout)
        self.assertIn("headgate check edge api_key=k1", shown.stdout)


if __name__ == "__main__":
    unittest.main()
