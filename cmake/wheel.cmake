# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Libraries and programs that run on other distributions than the one that builds them: linked with an older C library, which
# lies in a folder (scripts/wheel/sysroot.sh), and with libstdc++ and libgcc inside. Everything is compiled with this system's
# headers, as Debian's archives of LLVM and libstdc++ are. What such code wants of the C library and the older one has not,
# wavejit_newer_symbols supplies; the linker says if anything else is missing.
set(WAVEJIT_WHEEL_SYSROOT ${PROJECT_SOURCE_DIR}/build/wheel-sysroot)
if(NOT EXISTS ${WAVEJIT_WHEEL_SYSROOT}/made-of.txt)
  message(FATAL_ERROR "${WAVEJIT_WHEEL_SYSROOT} is not there: ./dev wheel makes it, with scripts/wheel/sysroot.sh")
endif()
# Python 3.11's headers and nothing else of that folder: pyconfig.h is looked for from beside them.
set(WAVEJIT_PYTHON311_INCLUDE ${WAVEJIT_WHEEL_SYSROOT}.python/python3.11 ${WAVEJIT_WHEEL_SYSROOT}.python)
file(COPY ${WAVEJIT_WHEEL_SYSROOT}/usr/include/python3.11 DESTINATION ${WAVEJIT_WHEEL_SYSROOT}.python)
file(COPY ${WAVEJIT_WHEEL_SYSROOT}/usr/include/x86_64-linux-gnu/python3.11 DESTINATION ${WAVEJIT_WHEEL_SYSROOT}.python/x86_64-linux-gnu)
execute_process(COMMAND g++-14 -print-file-name=libstdc++.a OUTPUT_VARIABLE wavejit_libstdcxx OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
cmake_path(GET wavejit_libstdcxx PARENT_PATH wavejit_gcc_folder)

add_library(wavejit_newer_symbols STATIC ${PROJECT_SOURCE_DIR}/python/portable/newer_symbols.c)
target_compile_options(wavejit_newer_symbols PRIVATE -ffunction-sections)  # what nobody wants, the linker leaves out
link_libraries($<BUILD_LOCAL_INTERFACE:wavejit_newer_symbols>)
# Each library has a libstdc++ of its own: none of its symbols may be taken from, or by, another.
add_link_options(--sysroot=${WAVEJIT_WHEEL_SYSROOT} --gcc-install-dir=${wavejit_gcc_folder} -static-libstdc++ -static-libgcc
                 LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:-O2
                 $<$<IN_LIST:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY$<SEMICOLON>MODULE_LIBRARY>:LINKER:-Bsymbolic>
                 $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:LINKER:-z,defs>)
