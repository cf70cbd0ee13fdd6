#!/usr/bin/env python3
"""Plants one-line bugs in a copy of the source, one after the other, and checks which of them the simulator or a unit test finds.

  source_mutants.py --check               checks that every line occurs exactly once in its file; part of the tests
  source_mutants.py [--seeds N] [--only TEXT] [--jobs N]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/simulation/source_mutants.txt"
COPY = ROOT / "build/source-mutants"
LEAST = 30  # mutants
CHUNK = 200  # seeds per run of the simulator
SIMULATOR = COPY / "build/tests/simulation/headgate_sim"
SOUND = COPY / "headgate_sim"  # without a bug


def read_list():
    mutants = []
    for block in LIST.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        entry = {"tests": []}
        for line in lines:
            if line.startswith("file "):
                if "file" in entry:
                    sys.exit(f"{LIST.name}: an empty line is missing before {line!r}")
                entry["file"] = line[5:]
            elif line.startswith("- "):
                entry["line"] = line[2:]
            elif line.startswith("+ "):
                entry["replacement"] = line[2:]
            elif line.startswith("test "):
                entry["tests"].append(line[5:])
            else:
                sys.exit(f"{LIST.name}: cannot read {line!r}")
        if {"file", "line", "replacement"} - entry.keys():
            sys.exit(f"{LIST.name}: a block lacks a file, a line or its replacement:\n{block}")
        mutants.append(entry)
    return mutants


def plant(text, mutant):
    """The text with the bug in it; None unless the line occurs exactly once, in one line or wrapped."""
    line = r"\s+".join(re.escape(word) for word in mutant["line"].split())
    at = list(re.finditer(rf"^([ \t]*){line}$", text, re.MULTILINE))
    if len(at) != 1:
        return None
    return text[: at[0].start()] + at[0][1] + mutant["replacement"] + text[at[0].end() :]


def check():
    mutants = read_list()
    wrong = []
    for mutant in mutants:
        path = ROOT / mutant["file"]
        if not path.exists() or plant(path.read_text(), mutant) is None:
            wrong.append(f"{mutant['file']}: does not occur exactly once: {mutant['line']}")
    if len(mutants) < LEAST:
        wrong.append(f"{len(mutants)} mutants, fewer than {LEAST}")
    if wrong:
        print("\n".join(wrong))
        print(f"hint: if a line has changed, change it in {LIST.relative_to(ROOT)} too")
    return 1 if wrong else 0


def run(command, timeout=None, check=False):
    """With a timeout, ends the children of the command, too: ctest would leave a test that does not end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if check and process.returncode != 0:
        sys.exit(output)
    return subprocess.CompletedProcess(command, process.returncode, output)


def build(targets, jobs):
    command = ["cmake", "--build", str(COPY / "build"), "--target", *targets]
    return run(command + (["-j", str(jobs)] if jobs else []))


def copy_tree():
    """Copies only changed files, so little is rebuilt."""
    listed = run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"], check=True).stdout.split("\0")
    for copy in (COPY / "source").rglob("*"):
        if copy.is_file() and not (ROOT / copy.relative_to(COPY / "source")).is_file():
            copy.unlink()
    for name in filter(None, listed):
        source, copy = ROOT / name, COPY / "source" / name
        if not source.is_file() or (copy.is_file() and copy.read_bytes() == source.read_bytes()):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    # Warnings are not errors here: a test has to find the bug, not the compiler.
    flags = COPY / "source/cmake/HeadgateToolchain.cmake"
    flags.write_text(flags.read_text().replace(" -Werror ", " "))


def prepare(jobs):
    copy_tree()
    if not (COPY / "build/build.ninja").exists():
        done = run(["cmake", "-S", str(COPY / "source"), "-B", str(COPY / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DCMAKE_CXX_FLAGS_DEBUG=-g1"])
        if done.returncode != 0:
            sys.exit(done.stdout)
    done = build(["headgate_sim"], jobs)
    if done.returncode != 0:
        sys.exit(done.stdout)
    shutil.copy(SIMULATOR, SOUND)


def test_binaries():
    """The test binary of each ctest entry that runs one of this project."""
    shown = run(["ctest", "--test-dir", str(COPY / "build"), "--show-only=json-v1"], check=True).stdout
    return {test["name"]: pathlib.Path(needed["value"][0]).name for test in json.loads(shown)["tests"]
            for needed in test["properties"] if needed["name"] == "REQUIRED_FILES"}


def targets_of(tests, binaries):
    unknown = sorted(set(tests) - binaries.keys())
    if unknown:
        sys.exit(f"{LIST.name}: no such test: {', '.join(unknown)}; hint: ctest -N lists them")
    return sorted({binaries[test] for test in tests})


def run_test(name, timeout):
    return run(["ctest", "--test-dir", str(COPY / "build"), "-R", f"^{name}$"], timeout=timeout).returncode


def check_tests(mutants, binaries, jobs):
    """Exits if a test fails without a bug: such a test proves nothing."""
    names = sorted({test for mutant in mutants for test in mutant["tests"]})
    if names and build(targets_of(names, binaries), jobs).returncode != 0:
        sys.exit("the tests do not compile")
    for name in names:
        if run_test(name, timeout=300) != 0:
            sys.exit(f"{name} fails without a bug")


def find_bug(mutant, binaries, seeds, jobs):
    """The test that finds the bug; None if none does."""
    def compiles(targets):
        built = build(targets, jobs)
        if built.returncode != 0:
            print(f"{built.stdout}\n{mutant['file']}: the mutant does not compile")
        return built.returncode == 0

    if mutant["tests"] and not compiles(targets_of(mutant["tests"], binaries)):
        return None
    for test in mutant["tests"]:
        try:
            if run_test(test, timeout=120) != 0:
                return f"by {test}"
        except subprocess.TimeoutExpired:
            return f"by {test}: it does not end"
    if not compiles(["headgate_sim"]):
        return None
    first = 1
    while first <= seeds:
        try:
            done = run([SIMULATOR, "--seed", str(first), "--seeds", str(min(CHUNK, seeds + 1 - first)), "--stop"], timeout=600)
        except subprocess.TimeoutExpired:
            return f"seed {first} and following: it does not end"
        if done.returncode == 0:
            first += CHUNK
            continue
        failed = re.search(r"seed (\d+) failed .*", done.stdout)
        if failed is None:
            return f"from seed {first} on: {(done.stdout.strip().splitlines() or ['it crashes'])[-1]}"
        # A seed that fails without a bug proves nothing.
        if run([SOUND, "--seed", failed.group(1)], timeout=600).returncode == 0:
            return failed.group(0)
        first = int(failed.group(1)) + 1
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--only", default="", help="mutants whose file or line contains this")
    parser.add_argument("--jobs", type=int, default=0)
    arguments = parser.parse_args()
    if check() != 0:
        return 1
    if arguments.check:
        return 0
    prepare(arguments.jobs)
    mutants = [m for m in read_list() if arguments.only in m["file"] or arguments.only in m["line"]]
    binaries = test_binaries()
    check_tests(mutants, binaries, arguments.jobs)
    missed = 0
    for mutant in mutants:
        path = COPY / "source" / mutant["file"]
        original = path.read_text()
        started = time.monotonic()
        try:
            path.write_text(plant(original, mutant))
            found = find_bug(mutant, binaries, arguments.seeds, arguments.jobs)
        finally:
            path.write_text(original)
        missed += found is None
        print(f"{mutant['file']}: {mutant['line']}\n  {found or 'NOT FOUND'} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{len(mutants)} mutants of the source, {missed} not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
