# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every probe of every target as a table in C++, with its code object. Called while building:
#
#   cmake -DPROBES=<folder> -DFRAME=<frame.s.in> -DTARGETS=<target>,… -DASSEMBLER=<llvm-mc> -DLINKER=<ld.lld>
#         -DSCRATCH=<folder> -DOUTPUT=<file.cpp> -P assemble.cmake
#
cmake_policy(VERSION 3.25)

# A probe is a file of PROBES: lines of fields ("// risk: 2"), then instructions.
file(GLOB files ${PROBES}/*.s)
list(SORT files)
string(REPLACE "," ";" TARGETS "${TARGETS}")
file(READ ${FRAME} frame)
set(code "")
set(rows "")
foreach(file ${files})
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  foreach(field settles risk targets check inputs outputs workgroups lds)
    if(text MATCHES "(^|\n)// ${field}: ([^\n]*)")
      set(field_${field} "${CMAKE_MATCH_2}")
    else()
      message(FATAL_ERROR "${file}: the line \"// ${field}: …\" is missing")
    endif()
  endforeach()
  string(REPLACE " " ";" inputs "${field_inputs}")
  list(GET inputs 0 pattern)
  list(GET inputs 1 input_words)
  string(REPLACE "\"" "\\\"" settles "${field_settles}")
  string(REPLACE " " ";" of_targets "${field_targets}")
  foreach(target ${of_targets})
    if(NOT target IN_LIST TARGETS)
      continue()
    endif()
    math(EXPR input_bytes "4 * ${input_words}")
    math(EXPR output_bytes "4 * ${field_outputs}")
    set(source "${frame}")
    string(REPLACE "@body@" "${text}" source "${source}")
    foreach(pair "input_bytes=${input_bytes}" "output_bytes=${output_bytes}" "input_words=${input_words}"
                 "output_words=${field_outputs}" "lds_bytes=${field_lds}" "target=${target}")
      string(REGEX MATCH "^([^=]*)=(.*)$" pair "${pair}")
      string(REPLACE "@${CMAKE_MATCH_1}@" "${CMAKE_MATCH_2}" source "${source}")
    endforeach()
    set(base ${SCRATCH}/${name}.${target})
    file(WRITE ${base}.s "${source}")
    execute_process(COMMAND ${ASSEMBLER} -triple=amdgcn-amd-amdhsa -mcpu=${target} -filetype=obj ${base}.s -o ${base}.o
                    RESULT_VARIABLE failed ERROR_VARIABLE message)
    if(failed)
      message(FATAL_ERROR "${file} for ${target}:\n${message}")
    endif()
    execute_process(COMMAND ${LINKER} -shared ${base}.o -o ${base}.co RESULT_VARIABLE failed ERROR_VARIABLE message)
    if(failed)
      message(FATAL_ERROR "${file} for ${target}:\n${message}")
    endif()
    file(READ ${base}.co bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND code "alignas(8) constexpr unsigned char ${name}_${target}[] = {${bytes}};\n")
    string(APPEND rows "    {.name = \"${name}\", .target = \"${target}\", .settles = \"${settles}\", .risk = ${field_risk}, "
                       ".check = \"${field_check}\", .pattern = \"${pattern}\", .input_words = ${input_words}, "
                       ".output_words = ${field_outputs}, .workgroups = ${field_workgroups}, .code = ${name}_${target}},\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT}
"// Made by tools/doctor/assemble.cmake.
#include \"tools/doctor/probe.h\"

namespace wavejit::tools::doctor {
namespace {
${code}
constexpr Probe probes[] = {
${rows}};
}  // namespace

std::span<const Probe> all_probes() { return probes; }

}  // namespace wavejit::tools::doctor
")
