#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `wavejit sim` says of a ROCr that cannot be used: one line, with what would do.   bad_input.sh <wavejit> <libhsa-runtime64.so> <program>
set -uo pipefail
wavejit=$1 runtime=$(realpath "$2") program=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; cat "$work/said"; exit 1; }

# ROCr cannot be loaded.
mkdir "$work/broken"
: >"$work/broken/libhsa-runtime64.so.1"
LD_LIBRARY_PATH=$work/broken "$wavejit" sim -- "$program" >"$work/said" 2>&1 && fail "a broken ROCr was taken"
[[ $(wc -l <"$work/said") == 1 ]] || fail "more or less than one line"
grep -q "libhsa-runtime64.so.1.*AMD's ROCm 7.2 is needed, or --front hip" "$work/said" || fail "the line does not say what would do"

# A version whose structures nobody knows.
mkdir "$work/unknown"
cp "$runtime" "$work/unknown/libhsa-runtime64.so.1.99.0"
ln -s libhsa-runtime64.so.1.99.0 "$work/unknown/libhsa-runtime64.so.1"
LD_LIBRARY_PATH=$work/unknown "$wavejit" sim --target gfx950 -- "$program" gfx950 1 256 >"$work/said" 2>&1 && fail "an unknown ROCr was taken"
[[ $(grep -c "^wavejit simulated GPU: " "$work/said") == 1 ]] || fail "more or less than one line of ours"
grep -q "libhsa-runtime64.so.1.99.0 is a version of ROCr whose structures are not known; known is libhsa-runtime64.so.1.18.x (ROCm 7.1 and 7.2)" \
  "$work/said" || fail "the line does not name both versions"

# A name that ROCr looks for and does not find ends in SIGSEGV, before its version is looked at.
/usr/bin/python3 - "$(dirname "$wavejit")/../lib/rocr/libdtif.so" "$(dirname "${BASH_SOURCE[0]}")/names_of_1_21.txt" >"$work/said" 2>&1 <<'PY' || fail "names are missing"
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
names = [line.strip() for line in open(sys.argv[2]) if line[0] != "#"]
missing = [name for name in names if not hasattr(library, name)]
assert len(names) == 43 and not missing, missing
PY
echo "one line each"
