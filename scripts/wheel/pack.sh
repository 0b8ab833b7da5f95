#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The wheels of a build of the preset wheel, in <build>/wheels: one for Python 3.12 and later, one for 3.11. What is inside is
# checked by check_portable.py, and by auditwheel from PyPI.   pack.sh <build>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$1
platform=manylinux_2_36_x86_64
largest=60000000  # the index takes 100 MB
say() { printf '[wheel] %s\n' "$*"; }
tools=build/wheel-tools
if [[ ! -x $tools/bin/auditwheel || $tools/requirements.txt -ot scripts/wheel/requirements.txt ]]; then
  say "auditwheel and libdeflate, from PyPI"
  /usr/bin/python3 -m venv --clear --without-pip "$tools"
  /usr/bin/python3 -m pip --python "$tools/bin/python3" --quiet --disable-pip-version-check install --no-input --no-cache-dir \
    --requirement scripts/wheel/requirements.txt
  cp scripts/wheel/requirements.txt "$tools/requirements.txt"
fi

# installed <folder> <component…>: the package as it will stand in site-packages.
installed() {
  local folder=$1 component
  shift
  rm -rf "$folder"
  mkdir -p "$folder"
  for component in "$@"; do cmake --install "$build" --component "$component" --prefix "$folder" --strip >"$build/install.log"; done
  cp -r python/wavejit/. "$folder/wavejit/"
  find "$folder" -name __pycache__ -prune -exec rm -r {} +
}

# checked <folder> <tag>: a wheel of it, which must be what its tag says.
checked() {
  local wheel report
  scripts/wheel/check_portable.py "$1" "$build/lib"
  wheel=$("$tools/bin/python3" scripts/wheel/pack.py "$1" "$2-$platform" "$build/wheels" "$build/compressed")
  report=$("$tools/bin/auditwheel" show "$wheel" | tr '\n' ' ')
  if [[ $report != *"the following platform tag: \"$platform\""* ]]; then
    say "auditwheel finds another tag than $platform: $report"
    exit 1
  fi
  if [[ $(stat -c %s "$wheel") -gt $largest ]]; then
    say "$wheel is larger than $largest bytes: $(stat -c %s "$wheel")"
    exit 1
  fi
  say "$wheel: $(stat -c %s "$wheel") bytes; auditwheel: $platform"
}

rm -rf "$build/wheels"
find "$build/compressed" -type f -mtime +1 -delete 2>/dev/null || true
installed "$build/installed" python
rm -rf "$build/installed311"
cp -r "$build/installed" "$build/installed311"
rm "$build"/installed311/wavejit/_wavejit.*.so
cmake --install "$build" --component python311 --prefix "$build/installed311" --strip >"$build/install.log"
checked "$build/installed" cp312-abi3
checked "$build/installed311" cp311-cp311
