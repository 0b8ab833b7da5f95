#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every command of `./dev help all` that no test runs (scripts/commands.txt), and prints what ran.
#
#   scripts/every_command.sh [filter]  runs them, some hours; or those whose words match the regular expression
#   scripts/every_command.sh --list <file>  runs those whose words are lines of the file
#   scripts/every_command.sh --check [<tests of ctest -N>]   whether each command has a line, and each named test is there
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
list=scripts/commands.txt
failed=0

# The words of the help, without what an argument stands for.
words_of_help() {
  ./dev help all | sed -n '/^  [a-z]/p' | sed -E 's/^  //; s/ {2,}.*//; s/ [[<].*//' | grep -vE '^(WAVEJIT|--)' | sort -u
}

# <command> = run <words>, for each that is run here; not the lines that explain the list.
runs() { grep -E '^[a-z].* = run ' "$list"; }

if [[ ${1:-} == --check ]]; then
  if runs | grep -F '<'; then
    echo "FAIL: $list: that is no command"
    failed=1
  fi
  while IFS= read -r word; do
    grep -q "^$word = " "$list" || { echo "FAIL: $list: no line for './dev $word'"; failed=1; }
  done < <(words_of_help)
  while IFS= read -r word; do
    words_of_help | grep -qx "$word" || { echo "FAIL: ./dev help has '$word', and ./dev help all has not"; failed=1; }
  done < <(./dev help | sed -n '/^  [a-z]/p' | sed -E 's/^  //; s/ {2,}.*//; s/ [[<].*//; s/, /\n/')
  if [[ -n ${2:-} ]]; then
    while IFS= read -r name; do
      grep -qE ": $name\$" "$2" || { echo "FAIL: $list: there is no test $name"; failed=1; }
    done < <(sed -n 's/.* = test //p' "$list")
  fi
  [[ $failed == 0 ]] && echo "every command is run somewhere before a release"
  exit "$failed"
fi

matching=(-E -- "${1:-}")
if [[ ${1:-} == --list ]]; then matching=(-Fxf "$2"); fi
filter=${1:-}
report=build/commands.txt
export WAVEJIT_DEV_REPORT=build/report-of-command
mkdir -p build
if [[ -z $filter ]]; then : >"$report"; fi
if ! runs | sed 's/.* = run //' | grep "${matching[@]}" >/dev/null; then
  printf "every_command.sh: '%s' matches no command; these are run: %s\n" "$filter" "$(runs | sed 's/.* = run //' | paste -sd, | sed 's/,/, /g')" >&2
  exit 2
fi
while IFS= read -r line; do
  words=${line#* = run }
  log=build/command-${line%% = *}.log
  log=${log// /-}
  begun=$SECONDS
  status=0
  if ! grep "${matching[@]}" >/dev/null <<<"$words"; then continue; fi
  printf '[commands] ./dev %s\n' "$words"
  eval "./dev $words" >"$log" 2>&1 </dev/null || status=$?
  printf '%5d s  exit %d  ./dev %s\n' "$((SECONDS - begun))" "$status" "$words" | tee -a "$report"
  if [[ $status != 0 ]]; then
    failed=1
    tail -n 20 "$log"
  fi
done < <(runs)
exit "$failed"
