#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# rocPRIM's headers, compiled once and run on a simulated GPU: rocprim.sh <wavejit> <clang> <bitcode> <source> <include> <folder> <target> <rounds> [<option of sim>…]
set -euo pipefail
wavejit=$1 clang=$2 bitcode=$3 source=$4 include=$5 folder=$6 target=$7 rounds=$8
shift 8
program=$folder/rocprim_lookback.$target
exec 9>"$program.lock"
flock 9
if [[ ! -x $program || $source -nt $program ]]; then
  "$clang" -x hip --offload-arch="$target" --rocm-device-lib-path="$bitcode" -std=c++17 -O1 -w -I"$include" "$source" -o "$program.new" -x none -lamdhip64
  mv "$program.new" "$program"
fi
flock -u 9
exec "$wavejit" sim --target "$target" "$@" -- "$program" "$rounds"
