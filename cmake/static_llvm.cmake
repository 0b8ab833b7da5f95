# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# LLVM 22 inside a shared library of ours: static archives, hidden symbols, nothing of LLVM exported, so that it lives
# beside whatever LLVM the host process already has (PyTorch's, Triton's, comgr's).
find_program(WAVEJIT_LLVM_CONFIG NAMES llvm-config-22 HINTS /usr/lib/llvm-22/bin REQUIRED)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --version OUTPUT_VARIABLE WAVEJIT_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --includedir OUTPUT_VARIABLE WAVEJIT_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --libdir OUTPUT_VARIABLE WAVEJIT_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --targets-built OUTPUT_VARIABLE WAVEJIT_LLVM_TARGETS OUTPUT_STRIP_TRAILING_WHITESPACE)
message(STATUS "LLVM ${WAVEJIT_LLVM_VERSION}, static, from ${WAVEJIT_LLVM_LIBDIR}")

# What LLVM compresses with; not in every distribution under the same name.
set(WAVEJIT_COMPRESSION_LIBRARIES z zstd)
if(WAVEJIT_WHEEL)
  find_library(WAVEJIT_ZLIB_ARCHIVE NAMES libz.a REQUIRED)
  find_library(WAVEJIT_ZSTD_ARCHIVE NAMES libzstd.a REQUIRED)
  set(WAVEJIT_COMPRESSION_LIBRARIES ${WAVEJIT_ZLIB_ARCHIVE} ${WAVEJIT_ZSTD_ARCHIVE})
endif()

# wavejit_use_llvm(<target>): LLVM's headers, for libraries whose final program or shared library links the archives.
function(wavejit_use_llvm target)
  target_include_directories(${target} SYSTEM PRIVATE ${WAVEJIT_LLVM_INCLUDE})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
endfunction()

# wavejit_link_static_llvm(<target> [LLD] <component>…)
# Debian's archives name Polly among the dependencies of some components; we do not link it. With LLD the ELF linker comes
# along; it refers to every target's initialisers, of which only AMDGPU's exist here: the others get empty ones.
function(wavejit_link_static_llvm target)
  cmake_parse_arguments(ARG "LLD" "" "" ${ARGN})
  set(components ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_LLD)
    list(APPEND components lto dtlto)
  endif()
  execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --link-static --libfiles ${components}
                  OUTPUT_VARIABLE archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(archives)
  list(FILTER archives EXCLUDE REGEX "Polly")
  if(ARG_LLD)
    list(PREPEND archives ${WAVEJIT_LLVM_LIBDIR}/liblldELF.a ${WAVEJIT_LLVM_LIBDIR}/liblldCommon.a)
    wavejit_absent_llvm_targets(absent)
    target_sources(${target} PRIVATE ${absent})
  endif()
  wavejit_use_llvm(${target})
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group ${WAVEJIT_COMPRESSION_LIBRARIES} ${CMAKE_DL_LIBS} Threads::Threads)
  target_link_options(${target} PRIVATE -Wl,--gc-sections)
  # Programs export nothing of it anyway, and a sanitizer's runtime inside one must stay visible to libstdc++.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  endif()
endfunction()

# The generated source file with empty initialisers for the targets that LLVM was built with and we do not link.
function(wavejit_absent_llvm_targets result)
  set(text "// Generated: initialisers of LLVM targets that are not linked (cmake/static_llvm.cmake).\nextern \"C\" {\n")
  separate_arguments(targets UNIX_COMMAND "${WAVEJIT_LLVM_TARGETS}")
  list(REMOVE_ITEM targets AMDGPU)
  foreach(name IN LISTS targets)
    foreach(part Target TargetInfo TargetMC AsmPrinter AsmParser)
      string(APPEND text "void LLVMInitialize${name}${part}() {}\n")
    endforeach()
  endforeach()
  # Debian's pass builder offers Polly; no pass pipeline is ever built here, so nobody asks.
  string(APPEND text "}\nstruct NoPassPlugin {\n  unsigned version = 0;\n  const char* name = nullptr;\n  const char* plugin_version = nullptr;\n"
                     "  void (*callbacks)(void*) = nullptr;\n};\nNoPassPlugin getPollyPluginInfo() { return {}; }\n")
  set(file ${CMAKE_BINARY_DIR}/generated/absent_llvm_targets.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  set(${result} ${file} PARENT_SCOPE)
endfunction()
