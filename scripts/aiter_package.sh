#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# AITER's package from PyPI, unpacked in build/aiter-package, for ./dev bench timing-model: its code objects are timed as kernels of others and never
# become part of this tree. Prints the folder of its code objects.
#
# Fetched once: about 40 MB. Whoever comes while another fetches, waits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.1.7.post2.dev18
folder=$PWD/build/aiter-package
mkdir -p build
exec 9>build/aiter-package.lock
flock 9
if [[ $(cat "$folder/version" 2>/dev/null) != "$version" ]]; then
  printf '[aiter] fetching amd-aiter %s into %s\n' "$version" "$folder" >&2
  rm -rf "$folder"
  mkdir -p "$folder"
  if ! /usr/bin/python3 -m pip --quiet --disable-pip-version-check download --no-input --no-deps --pre --dest "$folder" "amd-aiter==$version" >&2; then
    printf '[aiter] amd-aiter %s could not be fetched: it comes from PyPI (https://pypi.org, or the index that pip is set up for), which must be reachable\n' \
      "$version" >&2
    exit 1
  fi
  /usr/bin/python3 -m zipfile -e "$folder"/*.whl "$folder"
  rm -f "$folder"/*.whl
  printf '%s\n' "$version" >"$folder/version"
fi
printf '%s\n' "$folder/aiter_meta/hsa"
