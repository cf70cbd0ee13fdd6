#!/usr/bin/env python3
"""Remembers in a build folder which tests have passed, so that a test runs again only if something
that it depends on has changed.

    passed_tests.py skip BUILD      prints the names of the tests that need not run, one per line
    passed_tests.py record BUILD    remembers the tests that passed, from BUILD/tests.xml of ctest, and prints
                                    the reasons of the skipped ones

A test depends on its ctest entry, on the programs that the entry names, on the installed packages, and
on the files of the source tree. C++ sources count only for the tests that read or compile them; for
all others the programs do.

In continuous integration (CI is set in the environment), `record` fails if a test was skipped, unless
its reason begins with "impossible here: ": neither a package nor root would have let it run.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = (".cc", ".h")
# Tests with one of these labels read no C++ source. Every test has the label of its folder.
WITHOUT_SOURCES = ("headgate/", "tests/integration", "tests/model", "tests/redis", "tests/scenarios")
IMPOSSIBLE = "impossible here: "
# The reason of a skip, as unittest and as GoogleTest print it.
REASONS = re.compile(r"""(?:^|\.\.\. )skipped (?P<quote>['"])(.*)(?P=quote)$|: Skipped\n(.*)$""", re.MULTILINE)


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def digest_of_files(paths):
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b"gone"
        digest.update(f"{path} {len(content)} ".encode() + content)
    return digest.hexdigest()


def tests_of(build):
    listed = json.loads(output_of("ctest", "--test-dir", build, "--show-only=json-v1"))
    return [test for test in listed["tests"] if "command" in test]


def keys_of(build):
    """By test: a digest of all that it depends on; empty if git cannot list the files, as in a copy
    without its repository, or in one of another user, or if dpkg cannot list the packages, as on a
    system other than Debian. Then every test runs."""
    try:
        names = output_of("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
        packages = hashlib.sha256(output_of("dpkg-query", "-W")).hexdigest()
    except (OSError, subprocess.CalledProcessError):
        return {}
    tree = sorted(ROOT / name for name in set(names) if name)
    all_files = digest_of_files(tree) + packages
    data_files = digest_of_files(path for path in tree if path.suffix not in CPP) + packages
    programs = {}
    keys = {}
    for test in tests_of(build):
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        labels = properties.get("LABELS", [])
        reads_sources = not any(label.startswith(WITHOUT_SOURCES) for label in labels)
        words = test["command"] + [word.split("=", 1)[-1] for word in properties.get("ENVIRONMENT", [])]
        named = sorted({path for path in map(pathlib.Path, words) if path.is_absolute() and path.is_file()})
        for path in named:
            programs[path] = programs.get(path) or digest_of_files([path])
        parts = [test["command"], properties, [programs[path] for path in named], all_files if reads_sources else data_files]
        keys[test["name"]] = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return keys


def skips_of(case):
    """The reasons of skipped parts of a test, unless the test is `run` only because of them."""
    if case.find("skipped") is None:
        return []
    found = [match[2] or match[3] for match in REASONS.finditer(case.findtext("system-out") or "")]
    return list(dict.fromkeys(found)) or ["it gives no reason"]


def report_skips(skips):
    """Whether continuous integration may pass."""
    for name, reason in skips:
        print(f"skipped: {name}: {reason}")
    avoidable = sorted({name for name, reason in skips if not reason.startswith(IMPOSSIBLE)})
    if not avoidable or not os.environ.get("CI"):
        return True
    print(f"passed_tests.py: skipped in continuous integration: {', '.join(avoidable)}\n"
          "hint: run ./dev setup test, and the tests as root", file=sys.stderr)
    return False


def main(action, build):
    build = pathlib.Path(build).resolve()
    store, results = build / "passed_tests.json", build / "tests.xml"
    passed = json.loads(store.read_text()) if store.exists() else {}
    if action == "skip":
        keys = keys_of(build)
        print("\n".join(name for name, key in keys.items() if passed.get(name) == key))
        # For `record`: a file that is edited while the tests run must not count as tested.
        (build / "test_keys.json").write_text(json.dumps(keys))
        return 0
    keys = json.loads((build / "test_keys.json").read_text())
    skips = []
    for case in xml.etree.ElementTree.parse(results).iter("testcase"):
        name = case.get("name")
        if case.get("status") == "run" and name in keys:
            passed[name] = keys[name]
        else:
            passed.pop(name, None)
        skips += [(name, reason) for reason in skips_of(case)]
    store.write_text(json.dumps(passed))
    return 0 if report_skips(skips) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
