# Other people's libraries, all from Debian 12 (`./dev setup` installs them).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(Boost 1.81 EXACT REQUIRED)  # headers alone

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
if(PROJECT_IS_TOP_LEVEL AND NOT HEADGATE_HEADER_CHECK AND NOT HEADGATE_FUZZ)
  # The headers that nearly every source includes in the end.
  add_library(headgate_pch STATIC ${CMAKE_CURRENT_LIST_DIR}/pch.cc)
  target_link_libraries(headgate_pch PRIVATE absl::statusor fmt::fmt headgate_flags)
  target_precompile_headers(headgate_pch PRIVATE <absl/status/statusor.h> <fmt/format.h> <algorithm> <chrono>
    <functional> <memory> <string> <string_view> <vector>)
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
