#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests of what is missing fail, unless the user says so.   check_left_out.sh <source dir>
set -uo pipefail
cd "$1/tests/left_out" || exit 1
failed=0
# expect <exit code> <part of the output> <command…>
expect() {
  local code=$1 part=$2 output
  shift 2
  output=$("$@" 2>&1)
  local status=$?
  if [[ $status != "$code" || $output != *"$part"* ]]; then
    echo "FAIL: $*: exit code $status instead of $code, or no '$part' in '$output'"
    failed=1
  fi
}
unset WAVEJIT_WITHOUT_ROCM WAVEJIT_WITHOUT_TRITON WAVEJIT_WITHOUT_TORCH WAVEJIT_WITHOUT_TINYGRAD WAVEJIT_WITHOUT_JAX WAVEJIT_WITHOUT_CUPY WAVEJIT_WITHOUT_VLLM WAVEJIT_WITHOUT_SGLANG
expect 1 "WAVEJIT_WITHOUT_ROCM=1 leaves this test out" bash missing.sh ROCM "HIP"
expect 77 "left out: HIP (WAVEJIT_WITHOUT_ROCM=1)" env WAVEJIT_WITHOUT_ROCM=1 bash missing.sh ROCM "HIP"
expect 1 "HIP" env WAVEJIT_WITHOUT_TRITON=1 bash missing.sh ROCM "HIP"
expect 5 "ran" bash missing.sh TRITON "Triton" sh -c 'echo ran; exit 5'
expect 77 "left out: Triton" env WAVEJIT_WITHOUT_TRITON=1 bash missing.sh TRITON "Triton" sh -c 'echo ran; exit 5'
expect 77 "left out: PyTorch" env WAVEJIT_WITHOUT_TORCH=1 bash missing.sh TORCH "PyTorch" sh -c 'echo ran; exit 5'
# What stands on something else is left out with it, and by itself.
expect 77 "left out: PyTorch" env WAVEJIT_WITHOUT_TORCH=1 bash missing.sh TORCH "PyTorch" bash missing.sh VLLM "vLLM" sh -c 'echo ran; exit 5'
expect 77 "left out: vLLM" env WAVEJIT_WITHOUT_VLLM=1 bash missing.sh TORCH "PyTorch" bash missing.sh VLLM "vLLM" sh -c 'echo ran; exit 5'
# A version that is not known here: that it does not do is what its tests are for.
expect 0 "ran" bash missing.sh ROCM "HIP 9" sh -c 'echo ran'
expect 5 "" bash missing.sh ROCM "HIP 9" sh -c 'exit 5'
[[ $failed == 0 ]] && echo "missing tools are failures until they are left out by name"
exit "$failed"
