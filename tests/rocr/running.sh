#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What kernels meet while they run (running.hip), on either front and under a check; and what is said of one that does not end.
#   running.sh <wavejit> <program> <target>
#   running.sh <wavejit> <program> <target> lines
set -uo pipefail
wavejit=$1 program=$2 target=$3 what=${4:-results}
failed=0
said=

# Everything that the program says, within a time that no run needs.
run() {
  said=$(timeout 60 "$@" 2>&1)
  status=$?
}
right() {
  [ $status -eq 0 ] || { printf '%s: ended with %s\n%s\n' "$1" "$status" "$said"; failed=1; }
}
expect() {
  grep -qF -- "$1" <<<"$said" || { printf 'not said: %s\n%s\n' "$1" "$said"; failed=1; }
}
sim=("$wavejit" sim --target "$target")

if [ "$what" = results ]; then
  run "${sim[@]}" -- "$program" memory malloc values clock images
  right "beneath AMD's runtime"
  run "${sim[@]}" --front hip -- "$program" memory clock
  right "behind this project's front"
  run "${sim[@]}" --check waits,races -- "$program" clock memory
  right "under checks"
  # Copies by AMD's kernels: HIP's, and from 64 KiB on ROCr's.
  run env HSA_ENABLE_SDMA=0 "${sim[@]}" -- "$program" copies
  right "copies by kernels"
else
  export WAVEJIT_SIM_QUEUE_PATIENCE=1
  run env WAVEJIT_SIM_INSTRUCTION_LIMIT=100000 "${sim[@]}" -- "$program" late
  right "a late value"
  expect "kernel __amd_rocclr_streamOpsWait (HIP's own: in it hipStreamWaitValue waits for a value in memory): workgroup (0, 0, 0) has run for 1 s"
  for front in rocr hip; do
    said=$(timeout --signal INT 3 "${sim[@]}" --front $front -- "$program" endless 2>&1)
    expect "(int*): workgroup (0, 0, 0) has run for 1 s and goes on: wave 0 at "
    expect "Ctrl-C ends the program, WAVEJIT_SIM_INSTRUCTION_LIMIT=<instructions of a wave> such a kernel"
    run env WAVEJIT_SIM_INSTRUCTION_LIMIT=100000 "${sim[@]}" --front $front -- "$program" endless
    right "an endless kernel with a limit"
    expect "no end after 100000 instructions of a wave"
    expect "hipErrorLaunchFailure"
  done
fi
[ $failed -eq 0 ] && echo "all as it should be"
exit $failed
