# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_add_host_sets(<room> <source>…): the sources once per host instruction set, each in a namespace of its own
# (WAVEJIT_HOST_SET), as object libraries wavejit_simgpu_<room>_<set>. The objects of a set, of all rooms, are the global property
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

# wavejit_host_set_of_this_machine(<result>): the widest of them that the machine of the build has.
function(wavejit_host_set_of_this_machine result)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  set(best x86-64-v2)
  if(flags MATCHES " avx2 .*bmi2 ")
    set(best x86-64-v3)
    if(flags MATCHES " avx512f " AND flags MATCHES " avx512bw " AND flags MATCHES " avx512cd " AND flags MATCHES " avx512dq " AND flags MATCHES " avx512vl ")
      set(best x86-64-v4)
    endif()
  endif()
  set(${result} ${best} PARENT_SCOPE)
endfunction()
