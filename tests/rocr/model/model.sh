#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ROCr's interface for models where it is not like the thunk: a fault ends the program, and wrong folders say so.
#   model.sh fault <wavejit> <target> <hip_program>
#   model.sh cooperative <wavejit> <target> <hip_workgroups>
#   model.sh inputs <wavejit> <target> <rocr_agents> <libwavejit_model.so>
set -uo pipefail
what=$1 wavejit=$2 target=$3 program=$4
ulimit -c 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "model.sh $what: $1"
  cat "$work/out" "$work/err"
  exit 1
}

# has <file> <text>
has() { grep -qF -- "$2" "$work/$1" || fail "'$2' is not in what it printed"; }

case $what in
fault)
  # Everything else of the program comes before the kernel that writes far away.
  "$wavejit" sim --target "$target" --front rocr-model -- "$program" "$target" model >"$work/out" 2>"$work/err"
  [[ $? -ne 0 ]] || fail "the program ends well"
  has out passed
  has err "$target through ROCr's interface for models: one GPU"
  has err "kernel write_far(int*)"
  has err "writes 4 bytes at"
  ;;
cooperative)
  "$wavejit" sim --target "$target" --front rocr-model -- "$program" refused >"$work/out" 2>"$work/err" || fail "exit code $?"
  has err "a cooperative launch at ROCr's interface for models"
  has err "sim --front rocr"
  ;;
inputs)
  library=$5
  # wrong <text that its line has> <variable=value…>
  wrong() {
    env HSA_MODEL_LIB="$library" "${@:2}" "$program" "$target" 1 256 model >"$work/out" 2>"$work/err"
    local code=$?
    [[ $code -eq 2 ]] || fail "exit code $code for ${*:2}; expected 2"
    [[ $(wc -l <"$work/err") -eq 1 ]] || fail "more or less than a line for ${*:2}"
    has err "$1"
  }
  "$wavejit" sim --write-topology "$work/topology" --target "$target" || fail "no folder was written"
  mkdir "$work/empty"
  wrong "was not written by this library" HSA_MODEL_TOPOLOGY="$work/empty"
  wrong "was not written by this library" HSA_MODEL_TOPOLOGY="$work/nowhere"
  wrong "describes one $target, and the environment names" HSA_MODEL_TOPOLOGY="$work/topology" WAVEJIT_SIM_TARGET="${target}x2"
  # ROCr itself finds nothing wrong with more GPUs, and ends at the second.
  echo "${target}x2" >"$work/topology/wavejit_device"
  wrong "no single GPU" HSA_MODEL_TOPOLOGY="$work/topology"
  ;;
*) fail "unknown" ;;
esac
echo "as it should be"
