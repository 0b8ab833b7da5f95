#!/usr/bin/env bash
# Installs the build tree into a new folder, moves it (nothing may remember where it was built), builds a consumer with
# find_package(wavejit) and runs it.   check_package.sh <build dir> <source dir> <cc> <cxx>
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
cmake -S "$source/tests/package/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work/consumer" >/dev/null
export XDG_CACHE_HOME=$work/cache
"$work/consumer/consumer_c"
"$work/consumer/consumer_cpp"
"$work/prefix/bin/wavejit" supported >/dev/null
"$work/prefix/bin/wavejit" cache verify
entries=$(find "$work/cache" -name '*.wavejit' | wc -l)
[[ $entries -ge 1 ]] || { echo "the consumers left no cache entry"; exit 1; }
echo "package: consumers run against the moved install, $entries cache entries"
