# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_demo: what one forward call on a simulated GPU needs, and a program that makes one. Its three libraries have their usual names
# and lie in lib/demo: libwavejit and its compiler have one family, the simulated GPU has one host instruction set. They are linked from
# the objects of the whole libraries. Only the list of families and the program are compiled for the demo alone.
if(WAVEJIT_SANITIZER)
  return()
endif()
wavejit_register_families(_demo attention_forward)
wavejit_add_call_functions(_demo)
wavejit_optimise(LIGHTLY wavejit_families_emit_demo)
wavejit_precompile(standard wavejit_families_kernel_demo wavejit_families_call_demo)
wavejit_precompile(llvm wavejit_families_emit_demo)

# wavejit_demo_library(<library> <of what it links> <instead> <source>…): the library again, as <library>_of_demo, in lib/demo.
function(wavejit_demo_library library of_it instead)
  set(again ${library}_of_demo)
  add_library(${again} SHARED EXCLUDE_FROM_ALL ${ARGN})
  get_target_property(links ${library} LINK_LIBRARIES)
  list(REMOVE_ITEM links ${of_it})
  get_target_property(options ${library} LINK_OPTIONS)
  target_link_libraries(${again} PRIVATE ${instead} ${links})
  target_link_options(${again} PRIVATE ${options})
  set_target_properties(${again} PROPERTIES OUTPUT_NAME ${library} LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/demo)
endfunction()

wavejit_demo_library(wavejit wavejit_runtime_core "wavejit_engine;wavejit_families_call_demo"
                     $<TARGET_OBJECTS:wavejit_c_api> $<TARGET_OBJECTS:wavejit_c_api_attention_forward>
                     $<TARGET_OBJECTS:wavejit_call_functions_demo>)
set_target_properties(wavejit_of_demo PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR})
wavejit_absent_llvm_targets(absent)
wavejit_demo_library(wavejit_codegen wavejit_codegen_static "wavejit_compiler;wavejit_families_emit_demo;wavejit_kernel_language"
                     $<TARGET_OBJECTS:wavejit_codegen_objects> ${absent})
wavejit_host_set_of_this_machine(set)
get_property(kernels GLOBAL PROPERTY WAVEJIT_HOST_SET_${set})
wavejit_demo_library(wavejit_simgpu wavejit_simgpu_core wavejit_simgpu_engine $<TARGET_OBJECTS:wavejit_simgpu_objects> ${kernels})

add_executable(wavejit_demo EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/examples/first_call/main.cpp)
target_include_directories(wavejit_demo PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(wavejit_demo PRIVATE wavejit_of_demo)
wavejit_optimise(wavejit_demo)  # it computes the answer again in float64
add_dependencies(wavejit_demo wavejit_codegen_of_demo wavejit_simgpu_of_demo)
