#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The compiler cache as ./dev sets it: compiled headers come from it at the same path, and from no other path.
#   check_compile_cache.sh <source dir>
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "FAIL: $*"; failed=1; }
export CCACHE_DIR=$work/cache
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$work  # what a user may have set
. "$source/scripts/compile_cache.sh"

# make <folder>: a project with a header of its own and a compiled one, built from nothing
make() {
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  cat >"$work/$1/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.28)
project(one LANGUAGES CXX)
set(CMAKE_CXX_COMPILER_LAUNCHER ccache)
add_compile_options(-g1 "SHELL:-Xclang -fno-pch-timestamp")
add_library(one STATIC one.cpp)
target_precompile_headers(one PRIVATE <vector> own.h)
PROJECT
  printf '#pragma once\ninline int own() { return 1; }\n' >"$work/$1/own.h"
  echo 'int f() { return own() + static_cast<int>(std::vector<int>{1}.size()); }' >"$work/$1/one.cpp"
  cmake -S "$work/$1" -B "$work/$1/build" -G Ninja -DCMAKE_CXX_COMPILER=clang++-22 >/dev/null
  ninja -C "$work/$1/build" >"$work/log" || { cat "$work/log"; exit 1; }
}
count() { ccache --print-stats | awk -v name="$1" '$1 == name { print $2 }'; }

make first
misses=$(count cache_miss)
hits=$(count direct_cache_hit)
make first
[[ $(count cache_miss) == "$misses" ]] || complain "built again at the same path, something was compiled: $(ccache --show-stats --verbose)"
[[ $(count direct_cache_hit) -ge $((hits + 2)) ]] || complain "the compiled header did not come from the cache"
make second
[[ $(count cache_miss) -gt $misses ]] || complain "a clone at another path took what names the first one's"
header=$(find "$work/second/build" -name '*.pch')
if grep -qF "$work/first" "$header"; then complain "the second clone's compiled header names the first clone"; fi
rm -rf "$work/first"
touch "$work/second/one.cpp"
ninja -C "$work/second/build" >"$work/log" || complain "the second clone does not build without the first: $(cat "$work/log")"
# What a compiled header holds has changed: nothing that was compiled with the old one serves.
misses=$(count cache_miss)
sed -i 's/return 1/return 2/' "$work/second/own.h"
ninja -C "$work/second/build" >"$work/log" || complain "the changed clone does not build: $(cat "$work/log")"
[[ $(count cache_miss) -ge $((misses + 2)) ]] || complain "a changed header was not compiled again: $(ccache --show-stats --verbose)"
[[ $failed == 0 ]] && echo "compiled headers are cached by path: $(count cache_miss) compiled, $(count direct_cache_hit) from the cache"
exit "$failed"
