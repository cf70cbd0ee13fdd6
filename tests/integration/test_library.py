"""The library as others use it: installed, found by CMake, called from C++, C and Python."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import BINARY, INTEGRATION, require, run

ROOT = os.path.abspath(os.path.join(INTEGRATION, "../.."))
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(BINARY)))
EMBED = os.path.join(ROOT, "examples/embed")

ANN = "ann passes, 1 left\nann passes, 0 left\nann waits 30 s\nbob passes, 1 left\n"

C_PROGRAM = """
#include <headgate.h>
#include <stdio.h>
int main(void) {
  char error[200];
  headgate_limiter* limiter = headgate_new("k: 1/hour", error, sizeof error);
  headgate_entry entry = {"k", "v"};
  headgate_verdict verdict;
  for (int i = 0; i < 2; ++i) {
    if (headgate_check(limiter, &entry, 1, 1, &verdict) != HEADGATE_OK) return 1;
    printf("%d", verdict.allowed);
  }
  headgate_free(limiter);
  return 0;
}
"""


def done(test, *command, **kwargs):
    result = run(*command, timeout=600, **kwargs)
    test.assertEqual(result.returncode, 0, result.stdout[-3000:] + result.stderr[-3000:])
    return result.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require("cmake", "ninja")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = os.path.join(cls.folder, "prefix")
        subprocess.run(("cmake", "--install", BUILD, "--component", "library", "--prefix", cls.prefix), check=True, capture_output=True)
        cls.library = os.path.join(cls.prefix, "lib/libheadgate.so")

    def test_python_calls_the_c_interface(self):
        script = os.path.join(EMBED, "limiter.py")
        folder = os.path.dirname(self.library)
        self.assertEqual(done(self, "python3", script, self.library), ANN)
        self.assertEqual(done(self, "python3", script, "libheadgate.so", cwd=folder), ANN)
        # As the system finds an installed library.
        self.assertEqual(done(self, "python3", script, env={**os.environ, "LD_LIBRARY_PATH": folder}), ANN)

    def test_the_pages_name_the_installed_target(self):
        with open(os.path.join(self.prefix, "lib/cmake/headgate/headgate-targets.cmake"), encoding="utf-8") as file:
            targets = set(re.findall(r"add_library\((\S+)", file.read()))
        for page in ("README.md", "docs/guides/embedding.md", "examples/embed/CMakeLists.txt"):
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                named = set(re.findall(r"headgate::headgate\b|\bheadgate_limiter\b(?!\*)", file.read()))
            self.assertEqual(named, {"headgate::headgate"}, page)
            self.assertLessEqual(named, targets)

    def test_every_installed_target_asks_for_cpp20(self):
        with open(os.path.join(self.prefix, "lib/cmake/headgate/headgate-targets.cmake"), encoding="utf-8") as file:
            text = file.read()
        targets = re.findall(r"add_library\((\S+)", text)
        self.assertIn("headgate::headgate", targets)
        for target in targets:
            properties = re.search(rf"set_target_properties\({target} PROPERTIES\n(.*?)\n\)", text, re.S).group(1)
            self.assertIn('INTERFACE_COMPILE_FEATURES "cxx_std_20"', properties, target)

    def test_a_program_that_finds_the_package_need_not_ask_for_cpp20(self):
        folder = os.path.join(self.folder, "found")
        os.mkdir(folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            # An older standard that the project asks for does not stand in the way.
            file.write(
                "cmake_minimum_required(VERSION 3.25)\nproject(app CXX)\nset(CMAKE_CXX_STANDARD 17)\nfind_package(headgate 0.1 REQUIRED)\n"
                "add_executable(app app.cc)\ntarget_link_libraries(app PRIVATE headgate::headgate)\n"
            )
        with open(os.path.join(folder, "app.cc"), "w", encoding="utf-8") as file:
            file.write('#include "headgate/library/limiter.h"\nint main() { return headgate::Limiter::Make({.rules = {"k: 1/s"}}).ok() ? 0 : 1; }\n')
        build = os.path.join(folder, "build")
        done(self, "cmake", "-S", folder, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        done(self, "cmake", "--build", build)
        done(self, os.path.join(build, "app"))

    def test_a_c_compiler_takes_the_header(self):
        source = os.path.join(self.folder, "program.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(C_PROGRAM)
        program = os.path.join(self.folder, "program")
        words = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{self.prefix}/include", source, "-o", program)
        done(self, "cc", *words, self.library, f"-Wl,-rpath,{self.prefix}/lib")
        self.assertEqual(done(self, program), "10")

    def test_only_the_functions_of_the_header_are_visible_and_have_a_version(self):
        with open(os.path.join(self.prefix, "include/headgate.h"), encoding="utf-8") as file:
            declared = set(re.findall(r"\b(headgate_\w+)\(", file.read()))
        lines = done(self, "nm", "-D", "--defined-only", self.library).splitlines()
        visible = {line.split()[-1] for line in lines if line.split()[-2] in "TDBVW"}
        second = {"headgate_check_all", "headgate_new_at", "headgate_advance"}
        self.assertEqual(visible, {f"{name}@@HEADGATE_{2 if name in second else 1}" for name in declared})

    def test_python_checks_several_descriptors_in_its_own_time(self):
        sys.path.insert(0, EMBED)
        self.addCleanup(sys.path.remove, EMBED)
        from limiter import Entry, Verdict

        class Descriptor(ctypes.Structure):
            _fields_ = [("entries", ctypes.POINTER(Entry)), ("count", ctypes.c_size_t), ("cost", ctypes.c_uint64)]

        library = ctypes.CDLL(self.library)
        library.headgate_new_at.restype = ctypes.c_void_p
        library.headgate_new_at.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        library.headgate_advance.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.headgate_check_all.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Descriptor), ctypes.c_size_t, ctypes.POINTER(Verdict)]
        library.headgate_free.argtypes = [ctypes.c_void_p]
        rules = b"domain: edge\nall_or_nothing: true\ndescriptors:\n"
        rules += b"- {key: user, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: token_bucket}}\n"
        error = ctypes.create_string_buffer(1000)
        limiter = library.headgate_new_at(1_790_000_000 * 10**9, None, rules, 0, None, 0, error, len(error))
        self.assertTrue(limiter, error.value)
        entries = [Entry(b"user", b"ann"), Entry(b"user", b"bob")]
        both = (Descriptor * 2)(*(Descriptor(ctypes.pointer(entry), 1, 2) for entry in entries))
        verdicts = (Verdict * 2)()
        for wait, passes in ((0, 1), (0, 0), (59, 0), (1, 1)):
            self.assertEqual(library.headgate_advance(limiter, wait * 10**9), 0)
            self.assertEqual(library.headgate_check_all(limiter, b"edge", both, 2, verdicts), 0)
            self.assertEqual([verdict.allowed for verdict in verdicts], [passes, passes])
        self.assertEqual(verdicts[0].remaining, 0)
        library.headgate_free(limiter)

    def test_the_library_needs_no_library_of_the_server(self):
        needed = done(self, "readelf", "-d", self.library)
        self.assertNotRegex(needed, r"libssl|libcrypto|libspdlog|libprometheus")


class Guide(unittest.TestCase):
    """The commands of docs/guides/embedding.md, in a copy of the source that nobody has built."""

    def test_its_commands_install_the_library_and_build_the_examples(self):
        require("cmake", "ninja")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        source, prefix = os.path.join(folder, "headgate"), os.path.join(folder, "prefix")
        shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(".git", "build", "node_modules"))
        with open(os.path.join(ROOT, "docs/guides/embedding.md"), encoding="utf-8") as file:
            typed = re.findall(r"^\$ (.*)$", file.read(), re.MULTILINE)
        packages, *commands = (line.removeprefix("sudo ").replace("/usr/local", prefix) for line in typed)
        self.assertRegex(packages, "^apt-get install .*ninja-build")
        self.assertEqual(len(commands), 4)
        # As the system finds what is in /usr/local.
        env = {**os.environ, "CMAKE_PREFIX_PATH": prefix}
        said = [done(self, "bash", "-c", command, cwd=source, env=env) for command in commands]
        self.assertEqual(said[-1], ANN)
        examples = os.path.join(source, "build/embed")
        said = done(self, os.path.join(examples, "shared_by_threads"))
        self.assertEqual(said, "1000 of 4000 passed\n10 left after a refund\n500 more pass under the new rule\n")
        self.assertEqual(done(self, os.path.join(examples, "custom_store")), "4 of 20 passed, 2 buckets\n")
        with open(os.path.join(source, "build/library/CMakeCache.txt"), encoding="utf-8") as file:
            found = set(re.findall(r"^(\w+)(?<!_INCLUDE)_DIR:PATH=/", file.read(), re.MULTILINE))
        self.assertLessEqual(found, {"absl", "fmt", "Boost", "boost_headers"}, "the guide names the packages of no others")


class Subproject(unittest.TestCase):
    def test_a_project_can_take_the_source_in(self):
        require("cmake", "ninja")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                file.write(
                    "cmake_minimum_required(VERSION 3.25)\nproject(outer CXX)\n"
                    f"add_subdirectory({ROOT} headgate)\n"
                    "add_executable(program program.cc)\ntarget_link_libraries(program PRIVATE headgate::headgate)\n"
                )
            with open(os.path.join(folder, "program.cc"), "w", encoding="utf-8") as file:
                file.write('#include "headgate/library/limiter.h"\nint main() {}\n')
            done(self, "cmake", "-S", folder, "-B", os.path.join(folder, "build"), "-G", "Ninja")
            # The compiler's own standard is C++17.
            done(self, "ninja", "-C", os.path.join(folder, "build"), "CMakeFiles/program.dir/program.cc.o")
            targets = done(self, "ninja", "-C", os.path.join(folder, "build"), "-t", "targets", "all")
            self.assertIn("libheadgate_library.a", targets)
            self.assertNotIn("headgate_net", targets)


class Headers(unittest.TestCase):
    def test_the_list_of_public_headers_is_complete(self):
        with open(os.path.join(ROOT, "cmake/PublicHeaders.cmake"), encoding="utf-8") as file:
            lists = re.findall(r"set\((\w+)\n(.*?)\)", file.read(), re.S)
        public, inner = (set(text.split()) for _, text in lists)
        reached = set()

        def visit(header):
            if header in reached:
                return
            reached.add(header)
            with open(os.path.join(ROOT, "headgate", header), encoding="utf-8") as file:
                for included in re.findall(r'#include "headgate/([^"]+)"', file.read()):
                    visit(included)

        for header in public:
            visit(header)
        self.assertEqual(reached, public | inner)
        self.assertFalse(public & inner)

    def test_the_reference_has_every_public_header(self):
        with open(os.path.join(ROOT, "cmake/PublicHeaders.cmake"), encoding="utf-8") as file:
            public = set(re.search(r"HEADGATE_PUBLIC_HEADERS\n(.*?)\)", file.read(), re.S).group(1).split())
        with open(os.path.join(ROOT, "docs/Doxyfile"), encoding="utf-8") as file:
            documented = set(re.findall(r"headgate/(\S+\.h)", file.read()))
        self.assertEqual(documented, public | {"library/headgate.h"})

    def test_the_reference_is_made_without_a_warning(self):
        require("doxygen")
        with tempfile.TemporaryDirectory() as folder:
            done(self, "doxygen", os.path.join(ROOT, "docs/Doxyfile"), cwd=ROOT, env={**os.environ, "HEADGATE_REFERENCE": folder})
            self.assertTrue(os.path.exists(os.path.join(folder, "html/classheadgate_1_1Limiter.html")))


if __name__ == "__main__":
    unittest.main()
