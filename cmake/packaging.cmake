# cmake --install, and the package that find_package(wavejit) finds. tests/package builds a consumer against it.
include(CMakePackageConfigHelpers)

set(wavejit_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wavejit)

install(TARGETS wavejit EXPORT wavejit_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The compiler and the simulated GPU are opened by libwavejit.so when they are needed; nobody links them through us.
install(TARGETS wavejit_codegen wavejit_simgpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS wavejit_cli wavejit_compile RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/wavejit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# A HIP program finds the simulated GPU as its HIP library through this folder: LD_LIBRARY_PATH=<prefix>/lib/wavejit/hip
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/wavejit/hip\")
  file(MAKE_DIRECTORY \"\${folder}\")
  file(CREATE_LINK ../../libwavejit_simgpu.so \"\${folder}/libamdhip64.so.7\" SYMBOLIC)")

install(EXPORT wavejit_targets NAMESPACE wavejit:: DESTINATION ${wavejit_package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/wavejit-config.cmake.in ${CMAKE_BINARY_DIR}/wavejit-config.cmake
                              INSTALL_DESTINATION ${wavejit_package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/wavejit-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/wavejit-config.cmake ${CMAKE_BINARY_DIR}/wavejit-config-version.cmake
        DESTINATION ${wavejit_package_dir})

# What ./dev demo needs: the program and the three libraries.
add_custom_target(wavejit_demo_programs DEPENDS wavejit wavejit_codegen wavejit_simgpu wavejit_cli wavejit_compile)
