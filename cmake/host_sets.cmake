# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_add_host_sets(<room> <source>…): the sources once per host instruction set, each in a namespace of its own
# (WAVEJIT_HOST_SET), as object libraries wavejit_simgpu_<room>_<set>. Their objects are left in <room>_objects.
# Which of them runs is chosen when the program starts (src/simgpu/process/host_set.h); everything else is compiled once, for
# any x86-64.
function(wavejit_add_host_sets room)
  set(objects "")
  set(sets x86-64-v2 x86-64-v3 x86-64-v4)
  if(WAVEJIT_SANITIZER)
    set(sets x86-64-v2)  # WAVEJIT_FOR_EACH_HOST_SET
  endif()
  foreach(set ${sets})
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
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  set(${room}_objects ${objects} PARENT_SCOPE)
endfunction()
