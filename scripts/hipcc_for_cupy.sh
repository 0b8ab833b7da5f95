#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The `hipcc` of CuPy's environment (python_environment.py): Debian's clang, without a host's side.
words=()
for word in "$@"; do
  case $word in
    --genco) words+=(--gpu-bundle-output) ;;
    --preprocess) words+=(-E) ;;
    *) words+=("$word") ;;
  esac
done
exec clang++-22 -x hip --cuda-device-only --offload-arch=gfx942 --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode -w "${words[@]}"
