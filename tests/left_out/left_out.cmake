# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests that need what a machine may not have: ROCm, or Triton, PyTorch, JAX, tinygrad or vLLM from PyPI. None of them vanishes: it runs, it fails
# and says what is missing, or it is left out by name and counted so.
#
#   WAVEJIT_WITHOUT_ROCM=1, WAVEJIT_WITHOUT_TRITON=1, WAVEJIT_WITHOUT_TORCH=1, WAVEJIT_WITHOUT_JAX=1, WAVEJIT_WITHOUT_TINYGRAD=1,
#   WAVEJIT_WITHOUT_VLLM=1, in soak WAVEJIT_WITHOUT_CUPY=1 and WAVEJIT_WITHOUT_SGLANG=1, in the environment of the test run, leave tests out.
set(wavejit_left_out_folder ${CMAKE_CURRENT_LIST_DIR})

# wavejit_missing(<WORD> <what is missing> <test>…): tests that cannot be built here.
function(wavejit_missing word what)
  foreach(test ${ARGN})
    add_test(NAME ${test} COMMAND bash ${wavejit_left_out_folder}/missing.sh ${word} ${what})
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
