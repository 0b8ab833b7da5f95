#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One attention call on a simulated GPU, from arrays to a checked result: with an empty disk cache, then in a new process.
# demo.sh <the program first_call, or that of the target wavejit_demo>
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf '[demo] %s\n' "$*" >&2
  exit 1
}
# The interpreter: the engine that compiles kernels for the host is no part of what the demo builds.
export WAVEJIT_CACHE_DIR=$work/cache WAVEJIT_SIM_ENGINE=interpret
for run in cold warm; do
  "$program" sim:gfx950 >"$work/$run" || fail "the $run call failed"
done
value() { sed -n "s/^$2  *//p" "$work/$1"; }
[[ $(value cold kernel) == compiled,* ]] || fail "the first process did not compile: $(value cold kernel)"
[[ $(value warm kernel) == found\ in\ the\ disk\ cache,* ]] || fail "the second process did not find the kernel on disk: $(value warm kernel)"
[[ $(value cold bits) == "$(value warm bits)" ]] || fail "the second answer has other bits than the first"
cat <<LINES

computed  $(value cold call), on a simulated gfx950
error     $(value cold error)
first     kernel $(value cold kernel)
second    a new process: kernel $(value warm kernel), the same bits

Next:
  ./dev build                      the rest of it: the program wavejit, Python, tests (about 10 minutes on two cores)
  ./dev run wavejit supported      which calls have kernels on which GPUs
  ./dev test                       every test but the hours-long ones
LINES
