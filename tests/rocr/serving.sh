#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The serving example with two ranks, each with a GPU of its own: the same tokens and logits on either front, prepared and sealed too.
#   serving.sh <wavejit> <serving_engine>
set -euo pipefail
wavejit=$1 engine=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export WAVEJIT_CACHE_DIR=${WAVEJIT_TEST_KEPT:-$work}/kernels
answers() { grep -E '^(request|tokens|logits|alone|orders)' <"$1"; }
# Prepared here as well: what is prepared is more than what these requests launch, and nothing is left to compile below.
"$engine" --ranks 2 --prepare >"$work/own"
"$wavejit" sim --target gfx950x2 -- "$engine" --hip --ranks 2 --prepare --seal >"$work/rocr" 2>&1 || { cat "$work/rocr"; exit 1; }
diff <(answers "$work/own") <(answers "$work/rocr")
grep -q '^tokens: 45 of 45' "$work/rocr"
grep -q 'compiled 0, refused 0' "$work/rocr" || { grep '^cache' "$work/rocr"; exit 1; }
answers "$work/rocr" | tail -4
