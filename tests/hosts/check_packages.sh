#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ./dev left the host's packages as they were.   check_packages.sh <source dir>
#
# ./dev test writes the host's list before it does anything. In the Debian 13 of its own (whose /wavejit/host/dpkg is the
# host's) nothing may have changed; on a native Debian 13 packages may only have been added.
set -euo pipefail
cd "$1"
. scripts/host/settings.sh
before=build/packages-before.txt
if [[ ! -s $before ]]; then
  echo "left out: the host's list of packages was not written (./dev test writes it, where there is dpkg)"
  exit 77
fi
now=$(mktemp)
trap 'rm -f "$now" "$now.gone" "$now.new"' EXIT
if inside_root; then installed_packages /wavejit/host/dpkg >"$now"; else installed_packages >"$now"; fi
[[ -s $now ]] || { echo "FAIL: the list of packages cannot be read now"; exit 1; }
LC_ALL=C comm -23 "$before" "$now" >"$now.gone"
LC_ALL=C comm -13 "$before" "$now" >"$now.new"
failed=0
if [[ -s $now.gone ]]; then
  echo "FAIL: gone, or of another version now:"
  cat "$now.gone"
  failed=1
fi
if inside_root && [[ -s $now.new ]]; then
  echo "FAIL: new on the host:"
  cat "$now.new"
  failed=1
fi
echo "$(wc -l <"$before") packages before, $(wc -l <"$now") now"
exit "$failed"
