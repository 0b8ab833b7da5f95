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

# Presets for development compile most code at -O0, which takes the compiler half as long: a cache, a command or a test is as
# fast as it need be. What computes is optimised: the simulated GPU, float64 references, and whatever holds functions of LLVM's
# headers, which the linker then takes for LLVM's own archives too. Releases optimise everything.
set(WAVEJIT_OPTIMISATION "")
set(WAVEJIT_LIGHT_OPTIMISATION -O1)
if(CMAKE_BUILD_TYPE STREQUAL "Dev")
  set(WAVEJIT_OPTIMISATION -O2)
elseif(WAVEJIT_SANITIZER)
  set(WAVEJIT_OPTIMISATION -O1)  # beyond it the sanitizers' own checks take the compiler twice as long
endif()

# wavejit_optimise([SANITISED] [LIGHTLY] <target>…): optimises targets that compute, in development builds too. SANITISED: also under
# sanitizers. LIGHTLY: -O1, for code that mostly calls LLVM: its own time is small beside that of LLVM's passes, and it compiles a quarter
# faster.
function(wavejit_optimise)
  cmake_parse_arguments(ARG "SANITISED;LIGHTLY" "" "" ${ARGN})
  if(NOT WAVEJIT_OPTIMISATION OR (WAVEJIT_SANITIZER AND NOT ARG_SANITISED))
    return()
  endif()
  set(level ${WAVEJIT_OPTIMISATION})
  set(kind optimised)
  if(ARG_LIGHTLY)
    set(level ${WAVEJIT_LIGHT_OPTIMISATION})
    set(kind lightly_optimised)
  endif()
  foreach(target ${ARG_UNPARSED_ARGUMENTS})
    target_compile_options(${target} PRIVATE ${level})
    set_target_properties(${target} PROPERTIES WAVEJIT_OPTIMISED ${kind} WAVEJIT_OPTIMISED_BY ${level})
  endforeach()
endfunction()

# wavejit_optimise_files(<family> <target> <file>…): a few of a target that is not. They become objects of a library of their own, with
# the precompiled headers (precompiled_headers.cmake) of optimised code: most of what the compiler takes for them are headers. Releases
# make that library, too, though they optimise everything: a unity build joins the files that are left, and every preset joins the same
# ones, so that what development builds compile is what ships (tests/package/check_shipped_units.py).
function(wavejit_optimise_files family target)
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_ITEM sources ${ARGN})
  set(objects ${target}_optimised)
  add_library(${objects} OBJECT ${ARGN})
  set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)  # helpers have the names that fit their file
  target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_link_libraries(${objects} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  set_target_properties(${target} PROPERTIES SOURCES "${sources};$<TARGET_OBJECTS:${objects}>")
  wavejit_optimise(SANITISED ${objects})
  wavejit_precompile(${family} ${objects})
endfunction()

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
  # Four checks of each access to memory are left out, a sixth of what the compiler takes here: AddressSanitizer sees what comes
  # of a null pointer or of an object that is too small.
  target_compile_options(wavejit_build_flags INTERFACE -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,vptr
                                                       -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(wavejit_build_flags INTERFACE -fsanitize=address,undefined)
elseif(WAVEJIT_SANITIZER STREQUAL "thread")
  target_compile_options(wavejit_build_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(wavejit_build_flags INTERFACE -fsanitize=thread)
elseif(NOT WAVEJIT_SANITIZER STREQUAL "")
  message(FATAL_ERROR "WAVEJIT_SANITIZER is '${WAVEJIT_SANITIZER}'; it takes address, thread or nothing")
endif()
