# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# `python -m pip install .` takes compilers and libraries from the system, by Debian 13's names (pyproject.toml). Where they are not,
# the way is a wheel.
set(wavejit_pip_lacks "")
foreach(wavejit_program clang-22 clang++-22 ld.lld-22)
  find_program(wavejit_found_program ${wavejit_program} NO_CACHE NO_DEFAULT_PATH PATHS ENV PATH)
  if(NOT wavejit_found_program)
    list(APPEND wavejit_pip_lacks ${wavejit_program})
  endif()
  unset(wavejit_found_program)
endforeach()
if(wavejit_pip_lacks)
  list(JOIN wavejit_pip_lacks ", " wavejit_pip_lacks)
  message(FATAL_ERROR "pip install . compiles with clang 22 and lld 22 of the system, and these are not on the PATH: ${wavejit_pip_lacks}. "
                      "On Debian 13, scripts/install_toolchain.sh installs them. Elsewhere make a wheel, which needs nothing of this system: "
                      "./dev wheel, then python -m pip install --no-index --find-links build/wheel/wheels wavejit, beside numpy")
endif()
