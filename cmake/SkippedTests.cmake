# How the output of a test ends that has skipped something and has passed otherwise: values of SKIP_REGULAR_EXPRESSION. ctest
# then says "Skipped", and tests/passed_tests.py prints the reasons. A failure must not match.
set(HEADGATE_GTEST_SKIPPED "\\[  SKIPPED ] [0-9]+ tests?, listed below:\n(\\[  SKIPPED ] [^\n]*\n)+$")
set(HEADGATE_PYTHON_SKIPPED "\nOK \\([^\n]*skipped=[^\n]*\n$")
