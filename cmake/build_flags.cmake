# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The one place that says how every target of this project is compiled.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # there are none, and looking for them reads every file twice
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# All libraries and programs in one folder: the libraries find each other beside themselves, as when installed.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# A precompiled header is a file like another to ccache: without the time in it, equal inputs give equal bytes (./dev sets
# CCACHE_SLOPPINESS to what ccache asks for beside that).
find_program(WAVEJIT_CCACHE ccache)
if(WAVEJIT_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${WAVEJIT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WAVEJIT_CCACHE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# A test's own code runs once and is compiled in three presets. At -O0 the compiler takes half as long over it; what is
# tested, and what computes in tests (tests/support), is optimised as its preset says.
set(WAVEJIT_TEST_OPTIMISATION -O0)

add_library(wavejit_build_flags INTERFACE)
target_include_directories(wavejit_build_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_compile_options(wavejit_build_flags INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Werror
  # Canonical arithmetic and the simulated GPU need every float operation as written, on every host.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(wavejit_build_flags INTERFACE -Wshadow=local)  # clang has no local-only form
endif()
if(WAVEJIT_SANITIZER)
  target_compile_definitions(wavejit_build_flags INTERFACE WAVEJIT_ONE_HOST_SET)
endif()
if(WAVEJIT_SANITIZER STREQUAL "address")
  target_compile_options(wavejit_build_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(wavejit_build_flags INTERFACE -fsanitize=address,undefined)
elseif(WAVEJIT_SANITIZER STREQUAL "thread")
  target_compile_options(wavejit_build_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(wavejit_build_flags INTERFACE -fsanitize=thread)
elseif(NOT WAVEJIT_SANITIZER STREQUAL "")
  message(FATAL_ERROR "WAVEJIT_SANITIZER is '${WAVEJIT_SANITIZER}'; it takes address, thread or nothing")
endif()
