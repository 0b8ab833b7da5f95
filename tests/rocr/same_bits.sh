#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One attention call through AMD's HIP and ROCr on a simulated GPU, and through this project's own front: the same bits.
#   same_bits.sh <wavejit> <target> [rocr|rocr-model]
set -euo pipefail
wavejit=$1 target=$2 front=${3:-rocr}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/../../scripts/make_arrays.py" "$work" --queries 70 --keys 90 --heads 2/1 --head-dim 64
export WAVEJIT_CACHE_DIR=$work/cache
call=(run attention_forward --q "$work/q.npy" --k "$work/k.npy" --v "$work/v.npy" --causal --check)
"$wavejit" "${call[@]}" --device "sim:$target" --out "$work/own.npy"
"$wavejit" sim --target "$target" --front "$front" -- "$wavejit" "${call[@]}" --out "$work/rocr.npy"
cmp "$work/own.npy" "$work/rocr.npy"
echo "the same bits"
