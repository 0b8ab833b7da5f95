# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# CPack's four .deb: what a serving image needs apart from what compiles and what builds, and kernels. `./dev package` makes them
# under /usr; scripts/check_deb.sh installs them on a clean Debian 13. LLVM, LLD, libcrypto, hiredis and fmt are inside,
# spdlog is headers: what is left to depend on (libc, libstdc++, zlib, zstd) has one name on every Debian, so that the
# .deb of any machine with Debian 13's C library serves all of them. dpkg-shlibdeps finds the versions.
set(WAVEJIT_PACKAGE_CONTACT "The wavejit authors <maintainers@wavejit.example>" CACHE STRING "Maintainer field of the .deb")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME wavejit)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${WAVEJIT_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_VERBATIM_VARIABLES ON)
set(wavejit_parts runtime program development)
if(WAVEJIT_PACKAGED_KERNELS)
  list(APPEND wavejit_parts kernels)
endif()
set(CPACK_COMPONENTS_ALL ${wavejit_parts})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# What dpkg-shlibdeps would say about our own library is said below, with the version: the runtime, the compiler and the
# keys of one build belong together.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})

set(wavejit_runtime_package libwavejit${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${wavejit_runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "wavejit (= ${PROJECT_VERSION}), wavejit-kernels (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "attention kernels for AMD GPUs, emitted at the first call: runtime library
 What a serving process loads: finds kernels in read-only layers, the disk
 cache and what a fleet shares, loads and launches them through HIP. Needs the package wavejit only to
 compile what is in no cache, and for simulated GPUs.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME wavejit)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${wavejit_runtime_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "attention kernels for AMD GPUs, emitted at the first call: compiler and program
 The compiler that libwavejit.so opens at the first miss, the program wavejit
 (run, prebuild, explain, cache, sweep) and a simulated GPU on which every
 kernel runs without hardware.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libwavejit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${wavejit_runtime_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "wavejit (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "attention kernels for AMD GPUs, emitted at the first call: headers
 The C interface wavejit.h, C++ over it, what CMake and pkg-config need to find
 them, and a small serving engine as an example.")
# Code of GPUs: the same whatever the host's processor.
set(CPACK_DEBIAN_KERNELS_PACKAGE_NAME wavejit-kernels)
set(CPACK_DEBIAN_KERNELS_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_KERNELS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_KERNELS_PACKAGE_DEPENDS "${wavejit_runtime_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_KERNELS_DESCRIPTION "attention kernels for AMD GPUs, emitted at the first call: compiled kernels
 What calls without windows and modifiers lead to, for every supported GPU, in
 one archive that libwavejit.so asks before it compiles. Without this package
 each of them is compiled once, at the first call that needs it.")

# The linker's cache follows the library in and out.
file(WRITE ${CMAKE_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)

# share/doc/<package>/copyright: ours, then the notices of what is inside (third_party.txt), as Debian installed them where
# this is built.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE wavejit_terms)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/third_party.txt wavejit_third_party REGEX "^[^#]")
foreach(part IN LISTS wavejit_parts)
  string(TOUPPER ${part} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(notices "wavejit ${PROJECT_VERSION}\nCopyright: ${WAVEJIT_PACKAGE_CONTACT}\nLicense: Apache-2.0 WITH LLVM-exception\n\n${wavejit_terms}")
  foreach(line IN LISTS wavejit_third_party)
    string(REGEX MATCH "^([^ |]+) *\\|([^|]*)\\|" columns "${line}")
    set(library ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2 MATCHES ${part})
      set(text "Its notice was not installed where this was built.\n")
      if(EXISTS /usr/share/doc/${library}/copyright)
        file(READ /usr/share/doc/${library}/copyright text)
      endif()
      string(APPEND notices "\n\n==== Inside: ${library} ====\n\n${text}")
    endif()
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/debian/${package}/copyright "${notices}")
  install(FILES ${CMAKE_BINARY_DIR}/debian/${package}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${part})
endforeach()

include(CPack)
