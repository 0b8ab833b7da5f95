#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What simulated GPUs do not do ends in one line and an error, never in a hang or a crash that says nothing.
#   limits.sh <wavejit> <rocr_limits> <rocr_engines> <target>
set -uo pipefail
wavejit=$1 program=$2 engines=$3 target=$4
failed=0
said=

# Everything that the program says, within a time that no run needs.
run() {
  said=$(timeout 60 "$wavejit" sim --target "$target" -- "$program" "$@" 2>&1)
  status=$?
  [ $status -ne 124 ] || { echo "limits $*: hangs"; failed=1; }
}
expect() {
  grep -qF -- "$1" <<<"$said" || { printf 'not said: %s\n%s\n' "$1" "$said"; failed=1; }
}
expect_once() {
  [ "$(grep -cF -- "$1" <<<"$said")" = 1 ] || { printf 'not said once: %s\n%s\n' "$1" "$said"; failed=1; }
}

forked="this process was forked from one that uses GPUs"
run fork leave
expect "child: left with 0"
expect "the parent goes on"
run fork allocate
expect_once "$forked"
expect "child: left with 3"
expect "the parent goes on"
for what in copy launch; do
  run fork "$what"
  expect_once "$forked"
  expect "child: ended by signal 6"
  expect "the parent goes on"
done

run share
[ $status -eq 0 ] || { echo "share: $status"; failed=1; }
expect_once "refused: memory is not shared between processes"
expect "hipIpcGetMemHandle: hipErrorInvalidValue"
expect "hipMemImportFromShareableHandle: hipErrorInvalidValue"

program=$engines run stray
[ $status -eq 134 ] || { echo "stray: $status"; failed=1; }
expect_once "a copy engine's queue stopped: the packet at byte"
expect "reads "
expect "is no memory of the GPU"
expect_once "AMD's runtime is not told of it and would wait for ever: the program ends here"

for kib in 1000000 20000000; do
  said=$(ulimit -v $kib && timeout 60 "$wavejit" sim --target "$target" -- "$program" memory 1000000 2>&1)
  expect_once "the address space is limited to $kib KiB (ulimit -v)"
  expect "hipErrorNoDevice"
done
said=$(ulimit -v 200000000 && timeout 60 "$wavejit" sim --target "$target" -- "$program" memory 1000000 2>&1)
expect "hipMalloc of 1000000 bytes: hipSuccess"
[ $failed -eq 0 ] && echo "every limit says so"
exit $failed
