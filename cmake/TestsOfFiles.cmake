# Included by ctest when it starts: the entries for the files of a test binary. The names of the tests are read from the
# files as they are then, so that a new test needs no run of CMake.

include(${HEADGATE_SOURCE_DIR}/cmake/SkippedTests.cmake)

# headgate_tests_of_files(limiter /…/limiter_test "unit;headgate/limiter" "/…/a_test.cc;/…/b_test.cc"): entries limiter_a_test and
# limiter_b_test, and limiter_test_is_listed, which fails if the binary has a test that no entry runs.
function(headgate_tests_of_files prefix binary labels files)
  # ctest has four slots for each core (`./dev test`). A test takes two of them. Unit tests measure no times, so they leave
  # the processor to tests with real processes, which begin first.
  set(share PROCESSORS 2)
  set(command nice -n 10 ${binary})
  if("${labels}" MATCHES "^integration")
    list(APPEND share COST 15)
    set(command ${binary})
  endif()
  set(all "")
  foreach(file ${files})
    get_filename_component(stem ${file} NAME_WE)
    set(entry ${prefix}_${stem})
    if(stem STREQUAL "${prefix}_test")
      set(entry ${stem})
    endif()
    _headgate_filter(filter ${file})
    string(APPEND all ":${filter}")
    add_test(${entry} ${command} --gtest_filter=${filter})
    set_tests_properties(${entry} PROPERTIES
      ${share} LABELS "${labels}" TIMEOUT 300 WORKING_DIRECTORY ${HEADGATE_SOURCE_DIR} REQUIRED_FILES ${binary}
      SKIP_REGULAR_EXPRESSION "${HEADGATE_GTEST_SKIPPED}")
  endforeach()
  get_filename_component(name ${binary} NAME)
  add_test(${name}_is_listed ${binary} --gtest_list_tests --gtest_filter=-${all})
  # Names of tests are indented by two spaces.
  set_tests_properties(${name}_is_listed PROPERTIES
    LABELS "${labels}" TIMEOUT 60 WORKING_DIRECTORY ${HEADGATE_SOURCE_DIR} REQUIRED_FILES ${binary}
    FAIL_REGULAR_EXPRESSION "\n  [A-Za-z0-9_]")
endfunction()

# The --gtest_filter for the tests that a file defines or instantiates.
function(_headgate_filter result file)
  file(READ ${file} text)
  set(patterns "")
  string(REGEX MATCHALL "\nTEST(_F)?\\([ \n]*[A-Za-z0-9_]+,[ \n]*[A-Za-z0-9_]+" tests "${text}")
  foreach(test ${tests})
    string(REGEX REPLACE "^\nTEST(_F)?\\([ \n]*([A-Za-z0-9_]+),[ \n]*([A-Za-z0-9_]+)$" "\\2.\\3" pattern "${test}")
    list(APPEND patterns ${pattern})
  endforeach()
  string(REGEX MATCHALL "\nINSTANTIATE_TEST_SUITE_P\\([ \n]*[A-Za-z0-9_]+,[ \n]*[A-Za-z0-9_]+" suites "${text}")
  foreach(suite ${suites})
    string(REGEX REPLACE "^\nINSTANTIATE_TEST_SUITE_P\\([ \n]*([A-Za-z0-9_]+),[ \n]*([A-Za-z0-9_]+)$" "\\1/\\2.*"
      pattern "${suite}")
    list(APPEND patterns ${pattern})
  endforeach()
  string(REGEX MATCHALL "\nTYPED_TEST_SUITE\\([ \n]*[A-Za-z0-9_]+" typed "${text}")
  foreach(suite ${typed})
    string(REGEX REPLACE "^\nTYPED_TEST_SUITE\\([ \n]*([A-Za-z0-9_]+)$" "\\1/*.*" pattern "${suite}")
    list(APPEND patterns ${pattern})
  endforeach()
  if(NOT patterns)
    message(FATAL_ERROR "${file}: no TEST(, TYPED_TEST_SUITE( or INSTANTIATE_TEST_SUITE_P( at the start of a line; hint: a test file has at least one")
  endif()
  list(JOIN patterns ":" patterns)
  set(${result} ${patterns} PARENT_SCOPE)
endfunction()
