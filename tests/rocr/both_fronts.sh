#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests of a program, as they are and beneath AMD's HIP and ROCr: both pass, and every call gave the same bits.
#   both_fronts.sh <wavejit> <GPUs> <program> <filter>
# The GPUs are a target's, as in gfx950 or gfx942x2; the filter chooses tests of that target (support/test_device.h).
set -euo pipefail
wavejit=$1 gpus=$2 program=$3 filter=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arguments=(--gtest_brief=1 "--gtest_filter=$filter")

# processor_time <file> <command…>: runs it, and writes seconds of user and system.
processor_time() {
  local into=$1 TIMEFORMAT='%U %S'
  shift
  { time "$@" 2>&3; } 3>&2 2>"$into"
}

processor_time "$work/own.time" env WAVEJIT_TEST_OUTPUTS="$work/own" "$program" "${arguments[@]}"
# Ours are what the program was linked with: AMD's HIP and the simulated GPU beneath ROCr stand in front of them.
processor_time "$work/rocr.time" "$wavejit" sim --target "$gpus" -- env WAVEJIT_TEST_OUTPUTS="$work/rocr" WAVEJIT_TEST_DEVICE=hip \
  LD_PRELOAD="libdtif.so libamdhip64.so.7" "$program" "${arguments[@]}"
[[ -s $work/own ]] || { echo "FAIL: no call was noted: does '$filter' choose tests of $gpus?"; exit 1; }
if ! cmp "$work/own" "$work/rocr"; then
  diff "$work/own" "$work/rocr" | head -20
  exit 1
fi
awk -v calls="$(wc -l <"$work/own")" '
  FNR == 1 { seconds[FILENAME] = $1 + $2; order[++files] = FILENAME }
  END { printf "%d calls, the same bits; processor time %.2f s, %.2f s beneath ROCr: %.2f times\n", calls, seconds[order[1]],
               seconds[order[2]], seconds[order[2]] / seconds[order[1]] }' "$work/own.time" "$work/rocr.time"
