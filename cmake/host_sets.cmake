# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_add_host_sets(<room> <source>…): the sources once per host instruction set, each in a namespace of its own
# (WAVEJIT_HOST_SET), as object libraries wavejit_simgpu_<room>_<set>. The objects of a set, from all folders that have any, are the global property
# WAVEJIT_HOST_SET_<set>. Which of them runs is chosen when the program starts (src/simgpu/process/host_set.h); everything else is
# compiled once, for any x86-64.
set(WAVEJIT_HOST_SETS x86-64-v2 x86-64-v3 x86-64-v4)
if(WAVEJIT_SANITIZER)
  set(WAVEJIT_HOST_SETS x86-64-v2)  # WAVEJIT_FOR_EACH_HOST_SET
endif()

function(wavejit_add_host_sets room)
  foreach(set ${WAVEJIT_HOST_SETS})
    string(REPLACE - _ namespace ${set})
    set(library wavejit_simgpu_${room}_${namespace})
    add_library(${library} OBJECT ${ARGN})
    target_link_libraries(${library} PRIVATE wavejit_build_flags)
    target_compile_definitions(${library} PRIVATE WAVEJIT_HOST_SET=${namespace})
    set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)  # each file has a list `operations`
    # Vectorised whatever the build type: without it, tests of whole kernels take minutes. A loop that this host set
    # cannot vectorise (fused operations before v3) is no error. GCC warns of how wide vectors are passed between
    # functions that are always inlined; it never shows.
    target_compile_options(${library} PRIVATE
      -march=${set} -O3 -fno-math-errno -fno-trapping-math $<$<STREQUAL:${set},x86-64-v4>:-mprefer-vector-width=512>
      $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed> $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)
    set_property(GLOBAL APPEND PROPERTY WAVEJIT_HOST_SET_${set} $<TARGET_OBJECTS:${library}>)
  endforeach()
endfunction()

# wavejit_host_set_of_this_machine(<result>): the one that a program chooses on the machine of the build, by the same code.
function(wavejit_host_set_of_this_machine result)
  set(program "#include <cstdio>\n#include \"simgpu/process/host_set.h\"\nint main() { std::puts(wavejit::simgpu::name_of(wavejit::simgpu::best_host_set()).data()); }\n")
  try_run(ran compiled SOURCE_FROM_VAR host_set_name.cpp program SOURCES ${PROJECT_SOURCE_DIR}/src/simgpu/process/host_set.cpp
          CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/src CXX_STANDARD 23 NO_CACHE RUN_OUTPUT_VARIABLE set COMPILE_OUTPUT_VARIABLE said)
  string(STRIP "${set}" set)
  if(NOT compiled OR NOT set IN_LIST WAVEJIT_HOST_SETS)
    message(STATUS "no program of this build runs here, so ./dev demo would not: ${said}")
    set(set x86-64-v2)
  endif()
  set(${result} ${set} PARENT_SCOPE)
endfunction()
