# Debian's libnghttp2-dev has no CMake package.
find_path(NGHTTP2_INCLUDE_DIR nghttp2/nghttp2.h REQUIRED)
find_library(NGHTTP2_LIBRARY nghttp2 REQUIRED)
add_library(Nghttp2::nghttp2 UNKNOWN IMPORTED)
set_target_properties(Nghttp2::nghttp2 PROPERTIES IMPORTED_LOCATION "${NGHTTP2_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${NGHTTP2_INCLUDE_DIR}")
