# What `cmake --install` gives: find_package(livepool) with livepool::core and, where built, livepool::torch.
# Tested as a consumer would use it: tests/consumer.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/livepool)

set(livepool_targets livepool_core)
if(LIVEPOOL_WITH_TORCH)
  list(APPEND livepool_targets livepool_torch)
  # Torch's libraries are found where they were found at build time. (INSTALL_RPATH_USE_LINK_PATH leaves out
  # folders inside the project, where .venv lies.)
  set_target_properties(livepool_torch PROPERTIES INSTALL_RPATH "${LIVEPOOL_TORCH_LIBRARY_DIRS}")
  install(TARGETS livepool_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS ${livepool_targets} EXPORT livepool-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT livepool-targets NAMESPACE livepool:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/livepool-config.cmake.in
  ${PROJECT_BINARY_DIR}/livepool-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/livepool-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/livepool-config.cmake ${PROJECT_BINARY_DIR}/livepool-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/LivepoolTorch.cmake DESTINATION ${package_dir})

# The Python wheel (scikit-build-core): the module, and the library that it needs beside it.
if(SKBUILD AND LIVEPOOL_HAVE_PYTHON)
  set_target_properties(livepool_torch livepool_python PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../torch/lib")
  install(TARGETS livepool_python livepool_torch livepool_preload LIBRARY DESTINATION livepool COMPONENT python)
  # Beside the package: LIVEPOOL=1 in the environment is enough then.
  install(FILES ${PROJECT_SOURCE_DIR}/entry/python/livepool.pth ${PROJECT_SOURCE_DIR}/entry/python/livepool_startup.py
    DESTINATION . COMPONENT python)
endif()
