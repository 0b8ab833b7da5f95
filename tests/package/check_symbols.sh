#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every function that the library exports stands in the list with the version that it came with, and none has gone.
#   check_symbols.sh <library> <nm> <list> <version>
set -euo pipefail
library=$1 nm=$2 list=$3 version=$4
exported=$("$nm" -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u)
listed=$(grep -v '^#' "$list" | awk '{ print $1 }' | sort -u)
gone=$(comm -13 <(echo "$exported") <(echo "$listed"))
new=$(comm -23 <(echo "$exported") <(echo "$listed"))
failed=0
if [[ -n $gone ]]; then
  echo "FAIL: listed in $list and not exported: $gone. A program that calls them does not start: keep them, or raise SOVERSION"
  failed=1
fi
if [[ -n $new ]]; then
  echo "FAIL: exported and not listed; add them to $list, with this version:"
  sed "s/$/ $version/" <<<"$new"
  failed=1
fi
if grep -v '^#' "$list" | awk -v now="$version" '{ split($2, a, "."); split(now, b, "."); if (a[1] > b[1] || (a[1] == b[1] && a[2] > b[2])) { print; bad = 1 } } END { exit !bad }'; then
  echo "FAIL: versions later than $version"
  failed=1
fi
# The list itself is looked at: one that is empty would pass for nothing.
[[ $(wc -l <<<"$listed") -ge 30 ]] || { echo "FAIL: $list has few functions"; failed=1; }
[[ $failed == 0 ]] && echo "$(wc -l <<<"$listed") functions, each with its version"
exit "$failed"
