#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A part of what ./dev test takes by turns, another one each commit (part.h says how to take the same part again).
#
#   in_turn.sh shard <first> <parts> <command…>     the command with --shard <part>/<parts>; turn 0 has the part <first>
#   in_turn.sh one <command…> --or <command…> …     one of the commands
set -euo pipefail
turn=${WAVEJIT_TEST_TURN:-0}
kind=$1
shift
case $kind in
  shard)
    first=$1 parts=$2
    shift 2
    chosen=("$@" --shard "$(((first - 1 + turn) % parts + 1))/$parts")
    ;;
  one)
    count=1
    for word in "$@"; do if [[ $word == --or ]]; then count=$((count + 1)); fi; done
    wanted=$((turn % count)) at=0 chosen=()
    for word in "$@"; do
      if [[ $word == --or ]]; then
        at=$((at + 1))
      elif [[ $at == "$wanted" ]]; then
        chosen+=("$word")
      fi
    done
    ;;
  *)
    printf "in_turn.sh: '%s' is neither shard nor one\n" "$kind" >&2
    exit 2
    ;;
esac
printf 'turn %s: %s\n' "$turn" "${chosen[*]}"
exec "${chosen[@]}"
