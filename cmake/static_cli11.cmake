# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_cli11: CLI11's headers, and its code compiled once here instead of in every file that declares a command.
# Debian ships it as headers alone; CLI11_COMPILE is CLI11's own switch for this.
get_target_property(wavejit_cli11_include CLI11::CLI11 INTERFACE_INCLUDE_DIRECTORIES)
file(GLOB cli11_code RELATIVE ${wavejit_cli11_include} ${wavejit_cli11_include}/CLI/impl/*_inl.hpp)
list(TRANSFORM cli11_code PREPEND "#include <")
list(TRANSFORM cli11_code APPEND ">")
list(JOIN cli11_code "\n" cli11_code)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/cli11_inside.cpp @ONLY CONTENT
"// Generated: CLI11's code (cmake/static_cli11.cmake).
${cli11_code}
")
add_library(wavejit_cli11 STATIC ${CMAKE_BINARY_DIR}/generated/cli11_inside.cpp)
target_include_directories(wavejit_cli11 SYSTEM PUBLIC ${wavejit_cli11_include})
target_compile_definitions(wavejit_cli11 PUBLIC CLI11_COMPILE)
