# Compiler flags, caches and linkers: what every target of ours is built with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(HEADGATE_CCACHE ccache)
if(HEADGATE_CCACHE)
  # Paths within the tree count as relative, so that one checkout profits from another; the rest lets precompiled headers in.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${HEADGATE_CCACHE})
endif()
find_program(HEADGATE_MOLD mold)
if(HEADGATE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Carried by every target of ours, never by a project that embeds the library.
add_library(headgate_flags INTERFACE)
target_compile_options(headgate_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-align -Wunused -Wnull-dereference -Wformat=2
  -Wimplicit-fallthrough)
if(HEADGATE_WARNINGS_AS_ERRORS)
  target_compile_options(headgate_flags INTERFACE -Werror)
endif()
# __int128 carries the 128-bit intermediates of the decisions; it is not an ISO type.
target_compile_options(headgate_flags INTERFACE -Wno-pedantic)
# Only with this can ccache tell precompiled headers apart by their content.
target_compile_options(headgate_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives from inlined coroutine frames and from its own string.
  target_compile_options(headgate_flags INTERFACE -Wno-null-dereference -Wno-restrict -Wno-maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # GCC 14 does not see that a function which stores the address of its variable takes it back.
    target_compile_options(headgate_flags INTERFACE -Wno-dangling-pointer)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects its garbage from 128 MB on, which a precompiled header alone fills; from 512 MB on it compiles a tenth faster.
  target_compile_options(headgate_flags INTERFACE "SHELL:--param ggc-min-heapsize=524288")
endif()

# Sources of a folder that are compiled together (CMAKE_UNITY_BUILD) take a third of the time. Then a type of one of them,
# though nobody else sees it, looks to GCC as if it came from a header.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(headgate_flags INTERFACE -Wno-subobject-linkage)
endif()

# Tests are compiled without optimisation: most of a test's compile time was spent on code that runs once.
add_library(headgate_test_flags INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(headgate_test_flags INTERFACE -O0)
endif()
if(HEADGATE_SANITIZE MATCHES "undefined")
  # The checks of each pointer and reference take a third of a test's compile time and find what a crash would show, too. The
  # product has them.
  target_compile_options(headgate_test_flags INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
endif()

# The checks of the standard library, as for operator[] of a vector, run in production and so in all tests, too.
add_compile_definitions(_GLIBCXX_ASSERTIONS)

# -O3 takes a third longer to compile and decides no faster.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  # Enough optimisation for the million-step tests to be quick, little enough to step through.
  add_compile_options(-O1 -g1)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  # Optimising, GCC 12 takes the short form of a moved string for an overrun (its bug 105329).
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # Without these two, objects of 100 to 500 bytes are cleared and copied by `rep stos` and `rep movs`, which take 30 cycles to
    # begin.
    add_compile_options(-mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign
      -mmemcpy-strategy=unrolled_loop:512:noalign,libcall:-1:noalign)
  endif()
endif()
if(HEADGATE_HARDEN)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
    -fstack-protector-strong -fstack-clash-protection -g1)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i.86")
    add_compile_options(-fcf-protection)
  endif()
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(HEADGATE_SANITIZE)
  add_compile_options(-fsanitize=${HEADGATE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEADGATE_SANITIZE})
endif()
if(HEADGATE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(HEADGATE_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
