#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The declarations that the extension is compiled with are those of an installed jaxlib:   headers.sh <compiler> <Python with JAX>
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
headers=$("$2" -c 'import pathlib, importlib.util; print(pathlib.Path(importlib.util.find_spec("jaxlib").origin).parent / "include")')
read_by() { "$1" -std=c++23 -fsyntax-only -isystem "$headers" -I "$here/../../python/bindings" "${@:2}"; }
read_by "$1" "$here/headers.cpp"
# And it would say so if they were not: a field more in front of another.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed 's/^  std::int64_t rank;/  std::int64_t planted;\n  std::int64_t rank;/' "$here/../../python/bindings/xla_ffi.h" >"$scratch/xla_ffi.h"
cp "$here/headers.cpp" "$scratch/"
if "$1" -std=c++23 -fsyntax-only -isystem "$headers" -I "$scratch" "$scratch/headers.cpp" 2>"$scratch/told.txt"; then
  echo "headers.sh: another layout goes unseen"
  exit 1
fi
grep -q 'XLA_FFI_Buffer, dims' "$scratch/told.txt"
echo "jaxlib's headers: the same layout"
