# LLVM 22 inside a shared library of ours: static archives, hidden symbols, nothing of LLVM exported, so that it lives
# beside whatever LLVM the host process already has (PyTorch's, Triton's, comgr's).
find_program(WAVEJIT_LLVM_CONFIG NAMES llvm-config-22 HINTS /usr/lib/llvm-22/bin REQUIRED)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --version OUTPUT_VARIABLE WAVEJIT_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --includedir OUTPUT_VARIABLE WAVEJIT_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --libdir OUTPUT_VARIABLE WAVEJIT_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
message(STATUS "LLVM ${WAVEJIT_LLVM_VERSION}, static, from ${WAVEJIT_LLVM_LIBDIR}")

# wavejit_link_static_llvm(<target> <component>…)
# Debian's archives name Polly among the dependencies of some components; we do not link it.
function(wavejit_link_static_llvm target)
  execute_process(COMMAND ${WAVEJIT_LLVM_CONFIG} --link-static --libfiles ${ARGN}
                  OUTPUT_VARIABLE archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(archives)
  list(FILTER archives EXCLUDE REGEX "Polly")
  target_include_directories(${target} SYSTEM PRIVATE ${WAVEJIT_LLVM_INCLUDE})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group z zstd ${CMAKE_DL_LIBS} Threads::Threads)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
endfunction()
