# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake --install, the package that find_package(wavejit) finds, wavejit.pc, and CPack's .deb. tests/package builds
# consumers against the first three and looks into the fourth.
include(CMakePackageConfigHelpers)

set(wavejit_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wavejit)
# Four parts: `runtime` is what a serving image needs, `kernels` what it would compile at its first calls, `development`
# what a build needs, `program` everything else: the program, the compiler, the simulated GPU, and whatever names no part
# (CMakeLists.txt).

install(TARGETS wavejit EXPORT wavejit_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The remote layer, the compiler and the simulated GPU are opened by libwavejit.so when they are needed; nobody links them
# through us.
install(TARGETS wavejit_remote LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS wavejit_codegen wavejit_simgpu wavejit_simgpu_compile LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
install(TARGETS wavejit_cli wavejit_compile RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
# What shells complete, and the manual page: the program prints them from its own tables.
set(wavejit_printed ${CMAKE_BINARY_DIR}/installed)
foreach(form bash zsh fish man)
  add_custom_command(OUTPUT ${wavejit_printed}/wavejit.${form}
                     COMMAND wavejit_cli completion ${form} > ${wavejit_printed}/wavejit.${form}
                     DEPENDS wavejit_cli VERBATIM)
endforeach()
add_custom_target(wavejit_completions ALL DEPENDS ${wavejit_printed}/wavejit.bash ${wavejit_printed}/wavejit.zsh
                                                  ${wavejit_printed}/wavejit.fish ${wavejit_printed}/wavejit.man)
install(FILES ${wavejit_printed}/wavejit.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME wavejit COMPONENT program)
install(FILES ${wavejit_printed}/wavejit.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _wavejit COMPONENT program)
install(FILES ${wavejit_printed}/wavejit.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
install(FILES ${wavejit_printed}/wavejit.man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME wavejit.1 COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/wavejit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/presets DESTINATION ${CMAKE_INSTALL_DATADIR}/wavejit COMPONENT program
        FILES_MATCHING PATTERN "*.txt")
# A HIP program finds the simulated GPU as its HIP library through this folder: LD_LIBRARY_PATH=<prefix>/lib/wavejit/hip
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/wavejit/hip\")
  file(MAKE_DIRECTORY \"\${folder}\")
  file(CREATE_LINK ../../libwavejit_simgpu.so \"\${folder}/libamdhip64.so.7\" SYMBOLIC)" COMPONENT program)

# What AMD's ROCr opens under `wavejit sim`: <prefix>/lib/wavejit/rocr
install(TARGETS wavejit_dtif wavejit_driver_files wavejit_model wavejit_model_start LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wavejit/rocr COMPONENT program)

install(EXPORT wavejit_targets NAMESPACE wavejit:: DESTINATION ${wavejit_package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/wavejit-config.cmake.in ${CMAKE_BINARY_DIR}/wavejit-config.cmake
                              INSTALL_DESTINATION ${wavejit_package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/wavejit-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/wavejit-config.cmake ${CMAKE_BINARY_DIR}/wavejit-config-version.cmake
        DESTINATION ${wavejit_package_dir} COMPONENT development)

# pkg-config: folders relative to the file's own, so that a moved prefix is found where it is. In the build tree they would be
# wrong, so the file lies where pkg-config does not look.
set(wavejit_pkg_config_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH wavejit_pkg_config_to_prefix /prefix/${wavejit_pkg_config_dir} /prefix)
set(wavejit_pkg_config_library wavejit)
configure_file(${PROJECT_SOURCE_DIR}/cmake/wavejit.pc.in ${CMAKE_BINARY_DIR}/installed/wavejit.pc @ONLY)
# The Python package's (python/CMakeLists.txt): its folders have names of their own, and there is no libwavejit.so, which is a link.
block()
  set(wavejit_pkg_config_to_prefix ../..)
  set(wavejit_pkg_config_library :libwavejit.so.${PROJECT_VERSION_MAJOR})
  set(CMAKE_INSTALL_INCLUDEDIR include)
  set(CMAKE_INSTALL_LIBDIR lib)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/wavejit.pc.in ${CMAKE_BINARY_DIR}/wheel/wavejit.pc @ONLY)
endblock()
install(FILES ${CMAKE_BINARY_DIR}/installed/wavejit.pc DESTINATION ${wavejit_pkg_config_dir} COMPONENT development)

# The examples' sources, to be built as they are: find_package(wavejit) is all they need.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/first_call ${PROJECT_SOURCE_DIR}/examples/serving_engine ${PROJECT_SOURCE_DIR}/examples/training
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libwavejit-dev/examples COMPONENT development PATTERN build EXCLUDE)

include(packaged_kernels)  # an archive of compiled kernels, installed with the libraries
include(debian_packages)

# What ./dev package and ./dev wheel pack: the program and the libraries.
add_custom_target(wavejit_packed_programs DEPENDS wavejit wavejit_codegen wavejit_remote wavejit_simgpu wavejit_simgpu_compile wavejit_dtif wavejit_driver_files wavejit_hip_name wavejit_model wavejit_model_start wavejit_cli wavejit_compile)
