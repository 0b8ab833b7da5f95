# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Kernel families: a folder each (templates/README.md), a list of names, and what is made of the list.

# wavejit_add_family(<name> <folder> [USES <shared>…]): the folder's own CMakeLists.txt defines
#   wavejit_<name>_kernel       what a kernel is: specs, costs                      (no LLVM, no HIP)
#   wavejit_<name>_call         what a call is: checks, descriptors, routes, plans  (no LLVM, no HIP)
#   wavejit_<name>_emit         spec → IR                                           (LLVM)
# and api/c_api.cpp has its function of the C ABI.
# USES names folders of templates/ that several families share (templates/attention): what a kernel of the family is made
# of stands there too, so the family's generator id is over them as well.
function(wavejit_add_family name folder)
  cmake_parse_arguments(family "" "" "USES" ${ARGN})
  set_property(GLOBAL PROPERTY WAVEJIT_FAMILY_FOLDER_${name} ${folder})
  set_property(GLOBAL PROPERTY WAVEJIT_FAMILY_USES_${name} ${family_USES})
  get_property(shared GLOBAL PROPERTY WAVEJIT_SHARED_FOLDERS)
  list(APPEND shared ${family_USES})
  list(REMOVE_DUPLICATES shared)
  set_property(GLOBAL PROPERTY WAVEJIT_SHARED_FOLDERS ${shared})
  add_subdirectory(${folder} ${CMAKE_BINARY_DIR}/families/${name})
endfunction()

# wavejit_register_families(<suffix> <name>…): what knows all families of one build, and nothing else does:
#   wavejit_generator_id<suffix>, wavejit_families_kernel<suffix>, wavejit_families_call<suffix>,
#   wavejit_families_emit<suffix>.
# The product has the suffix ""; a test that brings a family of its own has another.
function(wavejit_register_families suffix)
  set(generated ${CMAKE_BINARY_DIR}/generated/families${suffix})
  set(lines "")
  foreach(family ${ARGN})
    string(APPEND lines "WAVEJIT_FAMILY(${family})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${generated}/registered_families.inc CONTENT "${lines}" @ONLY)

  # --- Which generator this is: hashes over sources, looked at again by every build (CONFIGURE_DEPENDS).
  file(GLOB_RECURSE engine_sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/src/codegen/*.h ${PROJECT_SOURCE_DIR}/src/codegen/*.cpp
       ${PROJECT_SOURCE_DIR}/src/targets/*.h ${PROJECT_SOURCE_DIR}/src/targets/*.cpp
       ${PROJECT_SOURCE_DIR}/src/families/kernel/*.h ${PROJECT_SOURCE_DIR}/src/families/kernel/*.cpp
       ${PROJECT_SOURCE_DIR}/src/families/emit/*.h ${PROJECT_SOURCE_DIR}/src/families/emit/*.cpp)
  set(sources ${engine_sources})
  list(JOIN engine_sources "\n" list)
  file(CONFIGURE OUTPUT ${generated}/generator/engine.txt CONTENT "${list}\n" @ONLY)
  foreach(family ${ARGN})
    get_property(folder GLOBAL PROPERTY WAVEJIT_FAMILY_FOLDER_${family})
    get_property(uses GLOBAL PROPERTY WAVEJIT_FAMILY_USES_${family})
    # What a call is (call/) changes no kernel.
    set(family_sources "")
    foreach(shared ${folder} ${uses})
      cmake_path(ABSOLUTE_PATH shared BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/templates)
      file(GLOB_RECURSE found CONFIGURE_DEPENDS ${shared}/kernel/*.h ${shared}/kernel/*.cpp
                                                ${shared}/emit/*.h ${shared}/emit/*.cpp)
      list(APPEND family_sources ${found})
    endforeach()
    list(APPEND sources ${family_sources})
    list(JOIN family_sources "\n" list)
    file(CONFIGURE OUTPUT ${generated}/generator/${family}.txt CONTENT "${list}\n" @ONLY)
  endforeach()
  list(JOIN ARGN " " names)
  set(script ${PROJECT_SOURCE_DIR}/src/codegen/generator_id.cmake)
  add_custom_command(
    OUTPUT ${generated}/generator_id.stamp
    BYPRODUCTS ${generated}/generator_id_generated.h
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DFAMILIES=${names} -DLISTS=${generated}/generator
            -DOUTPUT=${generated}/generator_id_generated.h -DLLVM_VERSION=${WAVEJIT_LLVM_VERSION} -P ${script}
    COMMAND ${CMAKE_COMMAND} -E touch ${generated}/generator_id.stamp
    DEPENDS ${sources} ${generated}/generator/engine.txt ${script}
    COMMENT "Hashing the generators' sources"
    VERBATIM)
  add_custom_target(wavejit_generator_id_header${suffix} DEPENDS ${generated}/generator_id.stamp)
  add_dependencies(wavejit_lint_inputs wavejit_generator_id_header${suffix})
  add_library(wavejit_generator_id${suffix} STATIC ${PROJECT_SOURCE_DIR}/src/codegen/generator_id.cpp)
  add_dependencies(wavejit_generator_id${suffix} wavejit_generator_id_header${suffix})

  # --- The lists of families.
  set(families ${PROJECT_SOURCE_DIR}/src/families)
  add_library(wavejit_families_kernel${suffix} STATIC ${families}/kernel/kernel_spec.cpp)
  add_library(wavejit_families_call${suffix} STATIC ${families}/call/registry.cpp)
  add_library(wavejit_families_emit${suffix} STATIC ${families}/emit/emit.cpp)
  wavejit_use_llvm(wavejit_families_emit${suffix})
  foreach(half generator_id families_kernel families_call families_emit)
    target_include_directories(wavejit_${half}${suffix} PRIVATE ${generated})
    target_link_libraries(wavejit_${half}${suffix} PUBLIC wavejit_build_flags)
  endforeach()
  target_link_libraries(wavejit_families_call${suffix} PUBLIC wavejit_families_kernel${suffix} wavejit_generator_id${suffix})
  target_link_libraries(wavejit_families_emit${suffix} PUBLIC wavejit_families_kernel${suffix} wavejit_generator_id${suffix})
  foreach(family ${ARGN})
    target_link_libraries(wavejit_families_kernel${suffix} PUBLIC wavejit_${family}_kernel)
    target_link_libraries(wavejit_families_call${suffix} PUBLIC wavejit_${family}_call)
    target_link_libraries(wavejit_families_emit${suffix} PUBLIC wavejit_${family}_emit)
  endforeach()
endfunction()

# wavejit_family_c_apis(<result> <name>…): the sources of their C functions. They are compiled into the library itself:
# what comes from archives stays hidden.
function(wavejit_family_c_apis result)
  set(sources "")
  foreach(family ${ARGN})
    get_property(folder GLOBAL PROPERTY WAVEJIT_FAMILY_FOLDER_${family})
    list(APPEND sources ${folder}/api/c_api.cpp)
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# wavejit_add_call_functions(<suffix>): wavejit_call_functions<suffix>, the C functions that take a call of any of the families that
# wavejit_register_families(<suffix> …) has named.
function(wavejit_add_call_functions suffix)
  add_library(wavejit_call_functions${suffix} OBJECT ${PROJECT_SOURCE_DIR}/src/runtime/call_c_api.cpp)
  target_include_directories(wavejit_call_functions${suffix} PRIVATE ${CMAKE_BINARY_DIR}/generated/families${suffix})
  target_link_libraries(wavejit_call_functions${suffix} PRIVATE wavejit_engine)
  wavejit_precompile(standard wavejit_call_functions${suffix})
endfunction()
