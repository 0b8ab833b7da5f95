#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A root that is not whole is never taken for one.   check_make_root.sh <source dir>
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "FAIL: $*"; failed=1; }
folder=$work/debian-13
mark=$folder/root/etc/wavejit-root

# attempt <what bootstrap does>: make_root with that in the place of debootstrap
attempt() {
  # A process of its own: in a condition, a subshell would go on behind failures.
  todo=$1 folder=$folder runs=$work/runs bash -euo pipefail -c '
    say() { echo "$*"; }
    . scripts/host/host.sh
    bootstrap() {
      echo run >>"$runs"
      mkdir -p "$2"/etc/apt/{sources.list.d,apt.conf.d} "$2/usr/sbin"
      eval "$todo"
    }
    make_root "$folder"'
}

attempt 'echo half >"$2/left"; false; echo "went on behind a failure"' >"$work/out" && complain "a failed bootstrap counts as done"
[[ ! -e $mark ]] || complain "a failed bootstrap left a root"
grep -q "went on" "$folder/log" && complain "bootstrap goes on behind a failure"
grep -q "starts afresh" "$work/out" || complain "it was not said what happens next: $(cat "$work/out")"

attempt 'echo half >"$2/left"; kill -9 $BASHPID' >/dev/null 2>&1 && complain "a killed bootstrap counts as done"
[[ ! -e $folder/root ]] || complain "a killed bootstrap left a root"
[[ -e $folder/root.part/left ]] || complain "the killed bootstrap did not get as far as this test wants"

attempt 'true' || complain "a whole root is not made after half of one"
[[ -e $mark ]] || complain "the root is not marked"
[[ ! -e $folder/root/left && ! -e $folder/root.part ]] || complain "something of the half root is left"
runs=$(wc -l <"$work/runs")
attempt 'true'
[[ $(wc -l <"$work/runs") == "$runs" ]] || complain "a root that is there was made again"

# What somebody else keeps there by the same name stays.
rm -rf "$folder"
mkdir -p "$folder/root"
echo mine >"$folder/root/kept"
attempt 'true' >"$work/out" && complain "a folder of somebody else was taken for a root"
[[ -e $folder/root/kept ]] || complain "a folder of somebody else was removed"
grep -q "WAVEJIT_DEBIAN_13" "$work/out" || complain "it was not said what would do: $(cat "$work/out")"

# Two at once make one.
rm -rf "$folder"
: >"$work/runs"
attempt 'sleep 0.3' &
attempt 'sleep 0.3'
wait
[[ $(wc -l <"$work/runs") == 1 ]] || complain "two at once made $(wc -l <"$work/runs") roots"
[[ $failed == 0 ]] && echo "roots are whole or not there"
exit "$failed"
