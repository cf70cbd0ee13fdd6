# Other people's libraries, all from Debian 12 or 13 (`./dev setup` installs them).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
# Headers alone. Boost.JSON exists from 1.75 on.
set(HEADGATE_BOOST_MIN 1.75)
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)  # Boost's own package file; CMake 3.30 deprecates its module for Boost
endif()
find_package(Boost ${HEADGATE_BOOST_MIN})
if(NOT Boost_FOUND)
  message(FATAL_ERROR "Boost ${HEADGATE_BOOST_MIN} or newer is missing (an older one has no Boost.JSON); "
    "hint: install libboost1.81-dev on Debian 12, libboost-dev on Debian 13")
endif()

include(FindLibyaml)

if(HEADGATE_BUILD_SERVER)
  find_package(OpenSSL 3 REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(prometheus-cpp REQUIRED COMPONENTS core)
  find_package(CLI11 REQUIRED)
  find_package(CURL 7.87 REQUIRED)
  include(FindZooKeeper)
  include(FindNghttp2)
endif()
if(PROJECT_IS_TOP_LEVEL AND NOT HEADGATE_FUZZ)
  # The headers that nearly every source includes in the end.
  add_library(headgate_pch STATIC ${CMAKE_CURRENT_LIST_DIR}/pch.cc)
  target_link_libraries(headgate_pch PRIVATE absl::flat_hash_map absl::statusor fmt::fmt headgate_flags)
  target_precompile_headers(headgate_pch PRIVATE <absl/container/flat_hash_map.h> <absl/status/statusor.h>
    <fmt/format.h> <algorithm> <chrono> <functional> <map> <memory> <optional> <span> <string> <string_view> <vector>)
endif()
if(HEADGATE_TESTS)
  find_package(GTest REQUIRED)
  find_package(nlohmann_json REQUIRED)
  # The common part of all tests: GoogleTest and the headers that most tests include, precompiled, and where the source is.
  add_library(headgate_test_base STATIC ${CMAKE_CURRENT_LIST_DIR}/pch.cc ${PROJECT_SOURCE_DIR}/tests/source_dir.cc)
  target_include_directories(headgate_test_base PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(headgate_test_base PUBLIC GTest::gmock GTest::gtest
    PRIVATE absl::statusor absl::flat_hash_map absl::function_ref fmt::fmt headgate_flags headgate_test_flags)
  # A precompiled header fits only what is compiled as it was: as part of an executable, -fPIE.
  set_target_properties(headgate_test_base PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(headgate_test_base PRIVATE -fPIE)
  target_precompile_headers(headgate_test_base PRIVATE <gmock/gmock.h> <gtest/gtest.h>
    <absl/container/flat_hash_map.h> <absl/functional/function_ref.h> <absl/status/statusor.h> <fmt/format.h>
    <algorithm> <array> <chrono> <deque> <filesystem> <fstream> <functional> <memory> <random> <span> <string> <thread>
    <unordered_map> <vector>)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/source_dir.cc PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS HEADGATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endif()
if(HEADGATE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
