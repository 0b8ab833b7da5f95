#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The words of ./dev soak, and the stages of its parts. Sourced by ./dev, behind stages.sh.
soak_table=tests/soak_parts.txt

# read_soak_words [word…]: sets soak_parts, or soak_filter; and soak_again. Before anything is installed or built.
read_soak_words() {
  local word known first last part status
  soak_parts=() soak_filter='' soak_again=
  known=$(sed -n 's/^\([0-9]\+\) | .*/\1/p' "$soak_table")
  if [[ ${1:-} == parts || ${1:-} == report ]]; then
    if [[ $# -gt 1 ]]; then refuse_soak_word "'$2' is not known behind '$1'"; fi
    return
  fi
  for word in "$@"; do
    if [[ $word == --again ]]; then
      soak_again=--again
    elif [[ $word == -* || -z $word ]]; then
      refuse_soak_word "'$word' is not known"
    elif [[ $word =~ ^([0-9]{1,6})(-([0-9]{1,6}))?$ ]]; then
      first=$((10#${BASH_REMATCH[1]})) last=$((10#${BASH_REMATCH[3]:-${BASH_REMATCH[1]}}))
      if ((first > last)); then refuse_soak_word "'$word' has no part: its first number is the larger one"; fi
      for ((part = first; part <= last; ++part)); do
        grep -qx "$part" <<<"$known" || refuse_soak_word "there is no part $part"
        soak_parts+=("$part")
      done
    elif [[ -n $soak_filter ]]; then
      refuse_soak_word "'$soak_filter' and '$word': one regular expression is accepted, as '$soak_filter|$word'"
    else
      soak_filter=$word
      status=0
      [[ '' =~ $word ]] || status=$?
      if [[ $status == 2 ]]; then refuse_soak_word "'$word' is no regular expression"; fi
    fi
  done
  if [[ -n $soak_filter && ${#soak_parts[@]} -gt 0 ]]; then refuse_soak_word "'$soak_filter' beside numbers of parts: one of the two is accepted"; fi
  if [[ -n $soak_filter && -n $soak_again ]]; then refuse_soak_word "--again goes with parts; '$soak_filter' always runs every test that matches"; fi
  if [[ -z $soak_filter && ${#soak_parts[@]} == 0 ]]; then mapfile -t soak_parts <<<"$known"; fi
}

# refuse_soak_word <why>
refuse_soak_word() {
  {
    printf './dev soak: %s; accepted: numbers of parts, as 3 or 3-7, parts, report, or one regular expression of names of tests\n' "$1"
    sed -n 's/^\([0-9]\+\) | \(.*\) | .*/  \1  \2/p' "$soak_table"
  } >&2
  exit 2
}

# recorded <preset> <command…>: a result is written down the moment it is printed (scripts/soak_results.py).
recorded() {
  local preset=$1
  shift
  "$@" 2>&1 | WAVEJIT_DEV_REPORT=$report scripts/soak_results.py record "$preset"
}

# run_part <part> <preset> [ctest option…]: those of its tests that have not passed at this commit.
run_part() {
  local part=$1 preset=$2 chosen=$PWD/$report/part-$1.txt
  shift 2
  WAVEJIT_DEV_REPORT=$report scripts/soak.py choose "$part" ${soak_again:+"$soak_again"}
  if [[ ! -s $chosen ]]; then return; fi
  if [[ $preset == commands ]]; then
    recorded commands scripts/every_command.sh --list "$chosen"
  else
    report_as=part-$part recorded "$preset" run_tests "$preset" "$@" --tests-from-file "$chosen" -V
  fi
}

# soak_part <part>: what a part needs is built first.
soak_part() {
  local part=$1 tests
  tests=$(sed -n "s/^$part | .* | //p" "$soak_table")
  case $tests in
    tsan:*)
      needed_stage "build tsan" build tsan wavejit_race_tests
      stage "test part-$part" run_part "$part" tsan
      ;;
    asan:*)
      needed_stage "build asan" build asan wavejit_address_tests
      stage "test part-$part" run_part "$part" asan
      ;;
    commands:) stage "test commands" run_part "$part" commands ;;
    *)
      if [[ ! -e $report/dev-is-built ]]; then
        needed_stage "build dev" build dev all wavejit_bench_programs
        : >"$report/dev-is-built"
      fi
      stage "test part-$part" run_part "$part" dev -C soak
      ;;
  esac
}

# soak: the parts, or the tests that match.
soak() {
  local part
  time_limit=(timeout --foreground --kill-after=60 4h)
  if [[ -n $soak_filter ]]; then
    needed_stage "build dev" build dev all wavejit_bench_programs
    stage "test dev" recorded dev run_tests dev -C soak -L soak -R "$soak_filter" -V
    return
  fi
  for part in "${soak_parts[@]}"; do soak_part "$part"; done
}
