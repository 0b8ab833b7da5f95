# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What must be there to compile, asked before CMake looks for a compiler: its own words do not say what would do.
#
# `python -m pip install .` takes compilers and libraries from the system, by Debian 13's names (pyproject.toml). Where they are not,
# the way is a wheel. `cmake` without a preset takes what it finds by common names, and Debian's clang 22 has none of them.
function(wavejit_find_programs result)
  set(missing "")
  foreach(name ${ARGN})
    find_program(found ${name} NO_CACHE NO_DEFAULT_PATH PATHS ENV PATH)
    if(NOT found)
      list(APPEND missing ${name})
    endif()
    unset(found)
  endforeach()
  set(${result} "${missing}" PARENT_SCOPE)
endfunction()

if(SKBUILD)
  wavejit_find_programs(wavejit_lacks clang-22 clang++-22 ld.lld-22)
  if(wavejit_lacks)
    list(JOIN wavejit_lacks ", " wavejit_lacks)
    message(FATAL_ERROR "pip install . compiles with clang 22 and lld 22 of the system, and these are not on the PATH: ${wavejit_lacks}. "
                        "On Debian 13, scripts/install_toolchain.sh installs them. Elsewhere make a wheel, which needs nothing of this system: "
                        "./dev wheel, then python -m pip install --no-index --find-links build/wheel/wheels wavejit, beside numpy")
  endif()
elseif(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  set(wavejit_common c++ g++ clang++ CC)
  wavejit_find_programs(wavejit_lacks ${wavejit_common})
  if("${wavejit_lacks}" STREQUAL "${wavejit_common}")
    message(FATAL_ERROR "no C++ compiler by the names that CMake tries (c++, g++, clang++). This tree is built with clang 22: "
                        "`./dev build` does it on any Linux; where scripts/install_toolchain.sh was, `cmake --preset release`, "
                        "or CC=clang-22 CXX=clang++-22 in front of this command")
  endif()
endif()
