# Debian's libyaml-dev brings no package file for CMake.
if(NOT TARGET libyaml::libyaml)
  find_library(HEADGATE_LIBYAML yaml REQUIRED)
  find_path(HEADGATE_LIBYAML_INCLUDE yaml.h REQUIRED)
  add_library(libyaml::libyaml UNKNOWN IMPORTED)
  set_target_properties(libyaml::libyaml PROPERTIES IMPORTED_LOCATION ${HEADGATE_LIBYAML}
                        INTERFACE_INCLUDE_DIRECTORIES ${HEADGATE_LIBYAML_INCLUDE})
endif()
