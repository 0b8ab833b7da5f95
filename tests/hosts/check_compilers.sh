#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_compilers.sh <tree>: where no compiler is, `cmake` and `pip install .` (which calls it) say in a line what would do.
set -euo pipefail
source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'check_compilers.sh: %s\n' "$*" >&2; exit 1; }

# A path with nothing on it but CMake and Ninja.
mkdir "$scratch/bin"
for program in cmake ninja; do ln -s "$(command -v "$program")" "$scratch/bin/$program"; done
configure() {
  if env -u CC -u CXX PATH="$scratch/bin" "$scratch/bin/cmake" -G Ninja -S "$source" -B "$scratch/build" "$@" >"$scratch/told.txt" 2>&1; then
    fail "cmake $* finds a compiler where there is none"
  fi
  ! grep -F 'CMAKE_CXX_COMPILER could be found' "$scratch/told.txt" >/dev/null || fail "cmake $* asks for a compiler in its own words: $(cat "$scratch/told.txt")"
  rm -rf "$scratch/build"
}
says() { tr -s '\n ' ' ' <"$scratch/told.txt" | grep -F -- "$1" >/dev/null || fail "not said: $1, but: $(cat "$scratch/told.txt")"; }

configure
says 'cmake --preset release'
says 'CC=clang-22 CXX=clang++-22'
says './dev build'
configure -DSKBUILD=ON
says 'clang-22, clang++-22, ld.lld-22'
says './dev wheel'
printf 'without a compiler, cmake and pip install . say what would do\n'
