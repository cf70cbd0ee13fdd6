# Debian's libzookeeper-mt-dev has no CMake package.
find_path(ZOOKEEPER_INCLUDE_DIR zookeeper/zookeeper.h REQUIRED)
find_library(ZOOKEEPER_MT_LIBRARY zookeeper_mt REQUIRED)
add_library(ZooKeeper::mt UNKNOWN IMPORTED)
set_target_properties(ZooKeeper::mt PROPERTIES IMPORTED_LOCATION "${ZOOKEEPER_MT_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${ZOOKEEPER_INCLUDE_DIR}")
