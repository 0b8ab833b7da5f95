#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What makes wheels, without making them: the check of what libraries want of other systems must find the libraries of this build
# wanting, which are for Debian 13; what packs must make a wheel that pip takes. Where ./dev wheel has been, also what it left.
#   check_wheel.sh <library dir> <source dir>
set -euo pipefail
lib=$1
source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
check() { "$source/scripts/wheel/check_portable.py" "$@"; }

if check "$lib" "$lib" >"$scratch/found.txt"; then fail "libraries of this build would run with a C library of 2.36, which they are not linked with"; fi
for wanted in '__isoc23_strtoull is wanted at GLIBC_2.38' 'needs libstdc++.so.6'; do
  grep -F "libwavejit.so.0.1.0: $wanted" "$scratch/found.txt" >/dev/null || fail "not found: $wanted, in $(head -n 5 "$scratch/found.txt")"
done
grep -F '__isoc23_strtol: no file wants it any more' "$scratch/found.txt" >/dev/null || fail "a function that is in no library is not found"

# docs/python.md lists what is supplied.
supplied=$(sed -nE 's/^[a-z ]+ (__[a-z0-9_]+)\(.*\) \{.*/\1/p' "$source/python/portable/newer_symbols.c")
[[ $(wc -w <<<"$supplied") -ge 1 ]] || fail "newer_symbols.c defines nothing that this test can read"
for name in $supplied; do
  grep -F "\`$name\`" "$source/docs/python.md" >/dev/null || fail "docs/python.md does not list $name"
done

mkdir -p "$scratch/installed/wavejit/bin"
echo 'version = "as packed"' >"$scratch/installed/wavejit/__init__.py"
printf '#!/bin/sh\necho program\n' >"$scratch/installed/wavejit/bin/wavejit"
chmod 755 "$scratch/installed/wavejit/bin/wavejit"
wheel=$("$source/scripts/wheel/pack.py" "$scratch/installed" py3-none-any "$scratch/wheels")
/usr/bin/python3 -m pip --quiet --disable-pip-version-check install --no-index --no-deps --target "$scratch/site" "$wheel" 2>"$scratch/pip.txt" ||
  fail "pip does not take what pack.py makes: $(cat "$scratch/pip.txt")"
[[ $(PYTHONPATH=$scratch/site /usr/bin/python3 -c 'import wavejit; print(wavejit.version)') == "as packed" ]] || fail "the package does not come out as it went in"
[[ $("$scratch/site/wavejit/bin/wavejit") == program ]] || fail "a program comes out without its mode"
PYTHONPATH=$scratch/site /usr/bin/python3 - <<'PYTHON' || fail "what pip reads of it is not what pyproject.toml says"
import importlib.metadata
told = importlib.metadata.metadata("wavejit")
assert told["Requires-Python"] == ">=3.11", told["Requires-Python"]
assert any(one.startswith("numpy") for one in told.get_all("Requires-Dist")), told.get_all("Requires-Dist")
assert importlib.metadata.distribution("wavejit").entry_points["wavejit"].value == "wavejit._program:main"
PYTHON

if [[ -d $source/build/wheel/installed ]]; then check "$source/build/wheel/installed" "$source/build/wheel/lib" || fail "what ./dev wheel left"; fi
echo "wheels are packed and judged as promised"
