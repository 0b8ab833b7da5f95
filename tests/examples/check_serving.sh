#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One way to serve, and what must be true of it.   check_serving.sh <mode> <serving_engine> <wavejit> <work dir>
# `cold` leaves a cache and a miss log in the work dir for the others.
set -euo pipefail
mode=$1 engine=$2 wavejit=$3 work=$4
export XDG_CACHE_HOME=$work/nobody WAVEJIT_LOG_LEVEL=warning
fail() { echo "FAIL: $*"; exit 1; }

# serve <expected exit code> [option…]: the example's own words go to $out.
serve() {
  local expected=$1 code=0
  shift
  out=$("$engine" "$@" 2>&1) || code=$?
  printf '%s\n' "$out"
  [[ $code == "$expected" ]] || fail "exit code $code, expected $expected"
}
counter() { sed -n "s/^cache, over all ranks:.* $1 \([0-9]*\).*/\1/p" <<<"$out"; }
expect() { [[ $(counter "$1") == "$2" ]] || fail "$1 is '$(counter "$1")', expected $2"; }
# stall <cause> <column>: 2 is preparing, 3 serving
stall() { sed -n "s/^  $1 *\([0-9.]*\) *\([0-9.]*\) .*/\\$(($2 - 1))/p" <<<"$out"; }
right() {
  grep -q ' equal to the reference;' <<<"$out" || fail "no word about tokens"
  grep -q '^tokens: 45 of 45 ' <<<"$out" || fail "not every token is the reference's"
  ! grep -q NOT <<<"$out" || fail "a request got another answer"
  grep -q '^alone: .* the same bits of logits' <<<"$out" || fail "the batch shows in the logits"
  # Requests arrive in other orders: other batches, pages and preemptions.
  grep -q '^orders: 3 others of arrival: the same tokens and bits' <<<"$out" || fail "the order of arrival shows"
  grep -Eq '^pages: 6 of 16 keys, [1-9][0-9]* taken .*, [1-9][0-9]* preemptions' <<<"$out" || fail "no page was shared, or none given back"
}

case $mode in
  cold)
    rm -rf "$work" && mkdir -p "$work"
    serve 0 --cache-dir "$work/cache" --miss-log "$work/misses.txt"
    right
    expect compiled 3
    expect published 3
    [[ $(stall compile 3) != 0.00 ]] || fail "compiling while serving cost nothing"
    [[ $(wc -l <"$work/misses.txt") == 3 ]] || fail "the miss log has other than 3 lines: $(cat "$work/misses.txt")"
    ;;
  warm)
    serve 0 --cache-dir "$work/cache"
    right
    expect compiled 0
    expect "from disk" 3
    expect misses 0
    ;;
  sealed)
    # The engine's own line names every class of a step's length.
    "$engine" --print-list >"$work/list.txt"
    "$wavejit" prebuild --target gfx950 --list "$work/list.txt" --cache-dir "$work/cache"
    serve 0 --cache-dir "$work/cache" --prepare --seal
    right
    expect compiled 0
    expect refused 0
    expect prepared 4
    [[ $(stall compile 3) == 0.00 && $(stall "disk fetch" 3) == 0.00 && $(stall "load onto the device" 3) == 0.00 ]] ||
      fail "a sealed engine stalled while serving"
    ;;
  archive)
    # What a build machine does with the log of a running engine: compile it, pack it, ship one file.
    rm -rf "$work/built" "$work/kernels.wavejit-archive"
    "$wavejit" prebuild --target gfx950 --list "$work/misses.txt" --cache-dir "$work/built"
    "$wavejit" cache pack "$work/kernels.wavejit-archive" --cache-dir "$work/built"
    chmod 0444 "$work/kernels.wavejit-archive"
    serve 0 --cache-dir "$work/absent" --archive "$(realpath --relative-to=. "$work")/kernels.wavejit-archive" --list "$work/misses.txt" --seal
    right
    expect compiled 0
    expect "layer hits" 4
    expect misses 0
    [[ ! -e $work/absent ]] || fail "something was written beside the archive"
    ;;
  sealed_unprepared)
    rm -f "$work/sealed_misses.txt"
    serve 3 --cache-dir "$work/cache" --seal --miss-log "$work/sealed_misses.txt"
    line=$(head -n 1 "$work/sealed_misses.txt")
    [[ -n $line ]] && grep -qF "$line" <<<"$out" || fail "the refusal does not name the line to prebuild"
    ;;
  ranks_cold)
    cache=$(mktemp -d)
    trap 'rm -rf "$cache"' EXIT
    export WAVEJIT_CACHE_LOCK_WAIT=60000  # on a busy machine a compile may take longer than the default
    serve 0 --ranks 4 --cache-dir "$cache"
    right
    expect compiled 3  # in all four together
    [[ $(counter "lock waits") -gt 0 ]] || fail "nobody waited for who compiles"
    [[ $(stall "another process compiles" 3) != 0.00 ]] || fail "waiting for who compiles cost nothing"
    ;;
  rank_killed)
    # One of two ranks dies while serving: the other says so and ends, nobody hangs.
    code=0
    "$engine" --ranks 2 --requests 64 --cache-dir "$work/cache" >"$work/killed.txt" 2>&1 &
    parent=$!
    trap 'kill "$parent" 2>/dev/null || true' EXIT
    for _ in $(seq 3000); do
      children=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null || true)
      [[ $(wc -w <<<"$children") -ge 2 ]] && break
      sleep 0.01
    done
    [[ $(wc -w <<<"$children") -ge 2 ]] || fail "no ranks to be seen"
    sleep 0.1
    kill -KILL "${children%% *}"
    wait "$parent" || code=$?
    cat "$work/killed.txt"
    [[ $code == 3 ]] || fail "exit code $code, expected 3"
    grep -q 'it was killed' "$work/killed.txt" || fail "nobody says who was killed"
    grep -q 'another rank failed' "$work/killed.txt" || fail "the other rank does not say why it ended"
    ;;
  waves_of_32)
    # Another instruction set, with the same answers.
    cache=$(mktemp -d)
    trap 'rm -rf "$cache"' EXIT
    serve 0 --target gfx1201 --cache-dir "$cache"
    right
    expect compiled 2
    ;;
  decode_step)
    # One sequence: waves share chunks and one launch merges, in fewer cycles and with the same bits.
    cache=$(mktemp -d)
    trap 'rm -rf "$cache"' EXIT
    # row <name> <column>: 1 is waves, 2 launches, 3 cycles
    row() { sed -n "s/^  $1 *//p" <<<"$out" | awk -v column="$2" '{print $column}'; }
    for target in gfx950 gfx942; do
      serve 0 --decode-step 8192 --target "$target" --cache-dir "$cache"
      [[ $(row "one wave, two launches" 1) == 1 && $(row "one wave, two launches" 2) == 2 ]] || fail "not one wave and two launches"
      [[ $(row "as wavejit plans it" 1) == 4 && $(row "as wavejit plans it" 2) == 1 ]] || fail "not four waves and one launch"
      (($(row "as wavejit plans it" 3) * 10 < $(row "one wave, two launches" 3) * 6)) || fail "not below 0.6 times the cycles"
      grep -q ' the same bits; largest error ' <<<"$out" || fail "no word about bits"
    done
    # Keys of one chunk have nothing to merge.
    serve 0 --decode-step 100 --ranks 2 --cache-dir "$cache"
    [[ $(row "one wave, two launches" 2) == 1 && $(row "as wavejit plans it" 2) == 1 ]] || fail "100 keys took more than one launch"
    ;;
  bad_options)
    serve 2 --decode-step 1
    serve 2 --decode-step 8192 --hip
    grep -q -- '--hip beside --decode-step: accepted: simulated GPUs' <<<"$out" || fail "does not say that the clock is simulated"
    serve 2 --ranks 3
    grep -q -- '--ranks 3: accepted: 1, 2, 4' <<<"$out" || fail "does not name option, value and what is accepted"
    serve 2 --requests many
    serve 2 --unknown
    serve 2 word
    serve 3 --target gfx000
    grep -q gfx000 <<<"$out" || fail "does not name the target"
    serve 3 --list /nowhere/list.txt
    grep -q /nowhere/list.txt <<<"$out" || fail "does not name the list"
    ;;
  *) fail "no mode '$mode'" ;;
esac
echo "serving_engine $mode: as promised"
