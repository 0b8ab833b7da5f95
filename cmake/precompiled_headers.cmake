# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Most of what the compiler reads are the headers of others, and most of those are the same few: parsed once for all
# that is compiled with the same flags, they leave half of the build's time from nothing. Off, as in the release and
# package presets, every file shows that it includes what it uses.
#
# A family is a list of headers; its holders (one a level of optimisation) own the compiled form and no code. Programs are compiled
# with the flag of libraries, -fPIC: headers that were compiled for one do not fit the other.
option(WAVEJIT_PRECOMPILED_HEADERS "Parse the headers of others once for all that use them" OFF)
if(NOT WAVEJIT_PRECOMPILED_HEADERS OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  function(wavejit_precompile family)
  endfunction()
  return()
endif()

set(CMAKE_C_COMPILE_OPTIONS_PIE -fPIC)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)

set(wavejit_standard_headers
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstdio> <cstdlib>
  <cstring> <deque> <expected> <filesystem> <format> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <random> <set> <span> <sstream> <string> <string_view> <system_error> <thread> <tuple> <unordered_map>
  <utility> <variant> <vector>)
set(wavejit_json_headers ${wavejit_standard_headers} <nlohmann/json.hpp>)
set(wavejit_tool_headers ${wavejit_json_headers} <CLI/CLI.hpp> <fmt/format.h>)
set(wavejit_llvm_headers ${wavejit_standard_headers}
  <llvm/IR/IRBuilder.h> <llvm/IR/IntrinsicsAMDGPU.h> <llvm/IR/LegacyPassManager.h> <llvm/IR/Module.h>
  <llvm/MC/MCContext.h> <llvm/MC/MCDisassembler/MCDisassembler.h> <llvm/MC/MCInst.h> <llvm/MC/TargetRegistry.h>
  <llvm/Object/ELFObjectFile.h> <llvm/Support/raw_ostream.h> <llvm/Target/TargetMachine.h>)
set(wavejit_test_headers ${wavejit_json_headers} <gmock/gmock.h> <gtest/gtest.h>)

# The holders stand here, and so must what they look for.
find_package(nlohmann_json REQUIRED GLOBAL)

# What the headers of a family need to be found, and the macros that they are read with.
set(wavejit_standard_needs "")
set(wavejit_json_needs nlohmann_json::nlohmann_json)
set(wavejit_tool_needs nlohmann_json::nlohmann_json wavejit_cli11 wavejit_fmt)
set(wavejit_test_needs nlohmann_json::nlohmann_json GTest::gmock GTest::gtest)

# wavejit_precompile(<family> [OWN] <target>…): the targets are compiled with the headers of the family. OWN ones have flags that
# nobody else has. What wavejit_optimise says of a target must be said before.
function(wavejit_precompile family)
  cmake_parse_arguments(ARG "OWN" "" "" ${ARGN})
  foreach(target ${ARG_UNPARSED_ARGUMENTS})
    if(ARG_OWN)
      target_precompile_headers(${target} PRIVATE ${wavejit_${family}_headers})
      continue()
    endif()
    set(kind plain)
    get_target_property(optimised ${target} WAVEJIT_OPTIMISED)
    if(optimised)
      set(kind ${optimised})
    endif()
    set(holder wavejit_precompiled_${family}_${kind})
    if(NOT TARGET ${holder})
      file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/no_code.cpp CONTENT "// Generated: owns a compiled header.\n" @ONLY)
      add_library(${holder} STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/no_code.cpp)
      target_link_libraries(${holder} PRIVATE wavejit_build_flags ${wavejit_${family}_needs})
      if(family STREQUAL "llvm")
        wavejit_use_llvm(${holder})
      endif()
      if(optimised)
        get_target_property(level ${target} WAVEJIT_OPTIMISED_BY)
        target_compile_options(${holder} PRIVATE ${level})
      endif()
      target_precompile_headers(${holder} PRIVATE ${wavejit_${family}_headers})
      add_dependencies(wavejit_lint_inputs ${holder})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${holder})
  endforeach()
endfunction()
