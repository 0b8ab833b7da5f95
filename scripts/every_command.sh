#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every command of `./dev help` that no test runs (scripts/commands.txt), and prints what ran.
#
#   scripts/every_command.sh           runs them, some hours
#   scripts/every_command.sh --check [<tests of ctest -N>]   whether each command has a line, and each named test is there
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
list=scripts/commands.txt
failed=0

# The words of the help, without what an argument stands for.
words_of_help() {
  ./dev help | sed -n '/^  [a-z]/p' | sed -E 's/^  //; s/ {2,}.*//; s/ [[<].*//' | grep -vE '^(WAVEJIT|--)' | sort -u
}

if [[ ${1:-} == --check ]]; then
  while IFS= read -r word; do
    grep -q "^$word = " "$list" || { echo "FAIL: $list: no line for './dev $word'"; failed=1; }
  done < <(words_of_help)
  if [[ -n ${2:-} ]]; then
    while IFS= read -r name; do
      grep -qE ": $name\$" "$2" || { echo "FAIL: $list: there is no test $name"; failed=1; }
    done < <(sed -n 's/.* = test //p' "$list")
  fi
  [[ $failed == 0 ]] && echo "every command is run somewhere before a release"
  exit "$failed"
fi

report=build/commands.txt
: >"$report"
while IFS= read -r line; do
  words=${line#* = run }
  log=build/command-${line%% = *}.log
  log=${log// /-}
  begun=$SECONDS
  status=0
  printf '[commands] ./dev %s\n' "$words"
  eval "./dev $words" >"$log" 2>&1 </dev/null || status=$?
  printf '%5d s  exit %d  ./dev %s\n' "$((SECONDS - begun))" "$status" "$words" >>"$report"
  if [[ $status != 0 ]]; then
    failed=1
    tail -n 20 "$log"
  fi
done < <(grep ' = run ' "$list")
cat "$report"
exit "$failed"
