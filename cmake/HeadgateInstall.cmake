# `cmake --install`: the library for find_package(headgate), and libheadgate.so with headgate.h for C.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(PublicHeaders)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/headgate)
set(libraries headgate_base headgate_algorithm headgate_permit headgate_rule headgate_rule_read headgate_store headgate_limiter headgate_library)
foreach(library ${libraries})
  string(REPLACE headgate_ "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  # The headers need C++20; a program that links one of the libraries need not ask for it.
  target_compile_features(${library} PUBLIC cxx_std_20)
endforeach()
set_target_properties(headgate_library PROPERTIES EXPORT_NAME headgate)
install(TARGETS ${libraries} EXPORT headgate ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT headgate NAMESPACE headgate:: DESTINATION ${package} FILE headgate-targets.cmake COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/headgate-config.cmake.in
  ${PROJECT_BINARY_DIR}/headgate-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headgate-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/FindLibyaml.cmake ${PROJECT_BINARY_DIR}/headgate-config.cmake
  ${PROJECT_BINARY_DIR}/headgate-config-version.cmake DESTINATION ${package} COMPONENT library)
foreach(header ${HEADGATE_PUBLIC_HEADERS} ${HEADGATE_INNER_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/headgate/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headgate/${folder} COMPONENT library)
endforeach()

if(TARGET headgate_c)
  install(TARGETS headgate_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(FILES ${PROJECT_SOURCE_DIR}/headgate/library/headgate.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
endif()
