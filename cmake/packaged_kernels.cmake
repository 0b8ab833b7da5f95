# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_kernels: an archive of compiled kernels, which is installed where libwavejit.so looks for it without being told
# (src/runtime/settings/packaged_kernels.h), so that the first call of a fresh installation is a disk hit. Not in the build tree's own
# place: there every change of a generator would make it another version's.
#   all     every kernel that calls without windows and modifiers reach, on every target: minutes. The package preset
#   a file  what its descriptors reach: seconds. The dev preset, whose tests install it
#   empty   nothing is made and installed
set(WAVEJIT_PACKAGED_KERNELS "" CACHE STRING "What is compiled ahead and installed: all, a file of descriptors, or nothing")

if(WAVEJIT_PACKAGED_KERNELS)
  set(wavejit_kernels_folder ${CMAKE_BINARY_DIR}/kernels)
  set(wavejit_kernels_archive ${wavejit_kernels_folder}/kernels.wavejit-archive)
  set(wavejit_kernels_list "")
  set(wavejit_kernels_file "")
  if(NOT WAVEJIT_PACKAGED_KERNELS STREQUAL all)
    cmake_path(ABSOLUTE_PATH WAVEJIT_PACKAGED_KERNELS BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE wavejit_kernels_file)
    set(wavejit_kernels_list --list ${wavejit_kernels_file})
  endif()
  # Without the builder's environment: its settings would be those of the kernels. What an interrupted build has made stays
  # in the cache beside the archive.
  add_custom_command(
    OUTPUT ${wavejit_kernels_archive}
    COMMAND env -i $<TARGET_FILE:wavejit_cli> prebuild --target all ${wavejit_kernels_list}
            --cache-dir ${wavejit_kernels_folder}/cache --output ${wavejit_kernels_archive}
    DEPENDS wavejit_cli wavejit wavejit_codegen ${wavejit_kernels_file}
    COMMENT "Compiling the kernels that are packaged"
    USES_TERMINAL VERBATIM)
  add_custom_target(wavejit_kernels ALL DEPENDS ${wavejit_kernels_archive})
  install(FILES ${wavejit_kernels_archive} DESTINATION ${CMAKE_INSTALL_DATADIR}/wavejit COMPONENT kernels)
endif()
