#!/usr/bin/env python3
"""Every program that dev, the tests and the examples start comes from Debian's base system or from a
package in the lists of dev, and every module of Python that the tests import, too."""

import ast
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import started_programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The package of a program that is named otherwise; `dpkg -S` tells it.
PACKAGES = {
    "ar": "g++", "cc": "g++", "nm": "g++", "readelf": "g++",  # g++ depends on binutils
    "ctest": "cmake", "ninja": "ninja-build", "clang++": "clang",
    "redis-cli": "redis-tools", "redis-benchmark": "redis-tools",
    "java": "default-jre-headless", "node": "nodejs", "php": "php-cli", "groff": "groff-base",
    "h2load": "nghttp2-client", "nghttpd": "nghttp2-server",
    "ip": "iproute2", "pgrep": "procps", "promtool": "prometheus",
}
# By function of dev: the sets of packages that it installs before; any other has those of `run`.
RUN = ("RUN", "SPEED", "HINT", "STORE")
TEST = ("RUN", "SPEED", "TEST", "NODE")
SETS = {
    **dict.fromkeys(("test_preset", "run_tests", "changed_paths", "test_changed", "command_test", "command_simulate", "install_node"), TEST),
    "command_bench": ("RUN", "SPEED", "BENCH"), "command_fuzz": ("RUN", "SPEED", "FUZZ"), "command_format": ("FORMAT",), "command_bare": ("BARE",),
}
# Words of a script at the place of a command: targets of CMake, and the options of Headgate.
NO_PROGRAMS = {"headgate", "tidy_test", "store_contract_test", "serve"}
# A command that is known only at run time is one of this repository if its source has one of these words.
OWN = ("BINARY", "os.path.", "os.environ.get", "sys.executable", "options", "pathlib.Path(")
# Others are passed on by functions whose calls are seen themselves, or come from a loop over names that are seen elsewhere.
PASSED_ON = {
    "tests/bare_machine_test.py": ("shutil.copy(TOOL, self.folder / 'source/tests')",),
    "tests/bench/fleet.py": ("binary", "f'hot{keys}-'"), "tests/bench/sidecar_against_nginx.py": ("f'http://127.0.0.1:{port}/small'",),
    "tests/bench/store_memory.py": ("w.replace('PORT', str(self.port))",), "tests/bench/strict.py": ("binary", "os.environ"),
    "tests/integration/harness.py": ("args", "command", "prefix", "program"), "tests/integration/namespaces.py": ("words",),
    "tests/integration/proxies.py": ("name",), "tests/integration/readers.py": ("command", "name"), "tests/integration/test_completion.py": ("shell",),
    "tests/integration/test_examples.py": ("program.group(1)", "shlex.split(command)", "shlex.split(line.replace(':8080', f':{server.port}').replace('-p 8080', f'-p {server.port}'))"),
    "tests/integration/test_library.py": ("command",), "tests/integration/test_proxy_examples.py": ("name",),
    "tests/integration/test_sidecar_restart.py": ("version",), "tests/integration/zookeeper.py": ("list(prefix)",),
    "tests/passed_tests.py": ("command",), "tests/passed_tests_test.py": ("command",), "tests/simulation/source_mutants.py": ("command",),
    "tests/started_programs_test.py": ("program",),
}
# C++ starts processes only here.
CPP_STARTERS = {"tests/server_process.h", "tests/redis/tls_test.cc"}


@functools.cache
def shell_words():
    """Builtins and keywords of bash, and other words that name no program."""
    return NO_PROGRAMS | set(subprocess.run(("bash", "-c", "compgen -bk"), capture_output=True, text=True, check=True).stdout.split())


def package_lists():
    """By name: the packages. In a|b each counts."""
    text = (ROOT / "dev").read_text()
    return {name: set(re.split(r"[\s|]+", words)) for name, words in re.findall(r'^readonly (\w+)_PACKAGES="([^"]*)"', text, re.MULTILINE)}


@functools.cache
def base_packages():
    """The packages that every Debian has."""
    shown = subprocess.run(("dpkg-query", "-W", "-f", "${Package} ${Essential} ${Priority}\n"), capture_output=True, text=True, check=True).stdout
    rows = (line.split(" ") for line in shown.splitlines())
    return {name for name, essential, priority in rows if essential == "yes" or priority == "required"} | {"apt"}


@functools.cache
def is_in_base(program):
    path = shutil.which(program, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if not path:
        return False
    path = str(pathlib.Path(path).resolve())  # such as awk, an alternative
    names = {path, path.removeprefix("/usr")}  # /bin is a link to /usr/bin
    owners = subprocess.run(("dpkg-query", "-S", *names), capture_output=True, text=True).stdout
    return bool({line.split(":")[0] for line in owners.splitlines()} & base_packages())


def wrong_with(where, program, sets, lists):
    """The fault of a program that is started in `where`, a file or a function; empty if there is none."""
    if program.startswith("?"):
        source = program[1:]
        known = source in PASSED_ON.get(where, ()) or any(word in source for word in OWN)
        return "" if known else f"cannot be seen before it runs: {source}; hint: write its name at the call, or add a row to PASSED_ON"
    package = PACKAGES.get(program, program)
    if "/" in program or program.startswith("-") or any(package in lists[name] for name in sets) or is_in_base(program):
        return ""
    return (f"{program} is neither in Debian's base system nor in {', '.join(f'{name}_PACKAGES' for name in sets)} of dev; "
            "hint: add its package there, and to PACKAGES if that has another name")


def scripts():
    """(path, text) of each file that may start something."""
    yield from ((name, (ROOT / name).read_text()) for name in ("dev", ".ci/run"))
    for folder in ("tests", "examples", "headgate"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in (".py", ".cc", ".h", ".mjs", "") and path.is_file() and "node_modules" not in name and "corpus" not in name:
                yield name, path.read_text()


def started(name, text):
    """(where, line, program, sets) of each program that a file starts."""
    sets = ("BARE",) if name == "tests/bare_machine" else ("RUN", "SPEED", "BENCH") if name.startswith("tests/bench/") else TEST
    if name.endswith(".py"):
        found = started_programs.of_python(text)
    elif name.endswith((".cc", ".h")):
        found = started_programs.of_cpp(text) if name.startswith("tests/") and "server_process" in text or name in CPP_STARTERS else {}
    elif not text.startswith("#!/usr/bin/env bash"):
        found = {}
    elif name == "dev":
        functions = re.findall(r"^(\w+)\(\) \{\n(.*?)^\}$", text, re.DOTALL | re.MULTILINE)
        no_programs = shell_words() | {function for function, _ in functions} | {"say"}
        for function, body in functions:
            for program, line in started_programs.of_shell(body, no_programs).items():
                yield function, line, program, SETS.get(function, RUN)
        return
    else:
        found = started_programs.of_shell(text, shell_words())
    for program, line in found.items():
        yield name, line, program, sets


class StartedPrograms(unittest.TestCase):
    def setUp(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("impossible here: this system has no packages of Debian")

    def test_each_comes_from_a_package_that_dev_installs(self):
        lists, wrong, count = package_lists(), [], 0
        for name, text in scripts():
            for where, line, program, sets in started(name, text):
                count += 1
                problem = wrong_with(where, program, sets, lists)
                wrong += [f"{name}, line {line} of {where}: {problem}"] if problem else []
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        self.assertGreater(count, 200)

    def test_other_languages_start_nothing_in_ways_that_are_not_seen(self):
        for name, text in scripts():
            if name.endswith((".cc", ".h")) and name not in CPP_STARTERS:
                self.assertIsNone(started_programs.CPP_STARTS.search(text), f"{name}; hint: use tests/server_process.h")
            elif name.endswith(".mjs"):
                self.assertNotIn("child_process", text, name)

    def test_each_module_of_python_comes_from_a_package(self):
        own = {path.stem for folder in ("tests", "examples") for path in (ROOT / folder).rglob("*.py")}
        for name, text in scripts():
            if name.endswith(".py"):
                nodes = list(ast.walk(ast.parse(text)))
                imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
                imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
                for module in {module.split(".")[0] for module in imported} - own - sys.stdlib_module_names:
                    self.assertIn(f"python3-{module}", package_lists()["BENCH" if "bench/" in name else "TEST"], name)

    def test_a_program_that_no_list_has_is_found(self):
        for name, text, program in (
            ("tests/integration/test_a.py", 'subprocess.run(["made-up", "-v"])', "made-up"),
            ("tests/integration/test_a.py", "def f(self):\n  words = ('made-up', *more)\n  run(*words)", "made-up"),
            ("tests/integration/test_a.py", "Headgate(prefix=('made-up', '-x'))", "made-up"),
            ("tests/integration/test_a.py", "require('curl', 'made-up')", "made-up"),
            ("tests/integration/test_a.py", "if shutil.which('made-up') is None: pass", "made-up"),
            ("tests/integration/test_a.py", "subprocess.run(words_of(x))", "?words_of(x)"),
            ("tests/integration/test_a.py", "run('cmake', '-S', folder, '-B', 'build')", "make"),
            ("tests/a_process.h", '#include "tests/server_process.h"\nprocess_.Start({"made-up", "-x"});', "made-up"),
            ("examples/a/run", "#!/usr/bin/env bash\nif ! made-up; then exit; fi", "made-up"),
            ("examples/a/run", '#!/usr/bin/env bash\nport=$(ls | made-up "$(cat x)") || exit', "made-up"),
            ("examples/a/run", "#!/usr/bin/env bash\ncase $x in\n  y | z) made-up ;;\nesac", "made-up"),
            ("dev", "#!/usr/bin/env bash\ncommand_fuzz() {\n  clang --version && promtool --version\n}\n", "promtool"),
        ):
            wrong = [found for where, _, found, sets in started(name, text) if wrong_with(where, found, sets, package_lists())]
            self.assertEqual(wrong, [program], text)


if __name__ == "__main__":
    unittest.main()
