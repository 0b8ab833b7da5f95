#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the build tree into a new folder, moves it (nothing may remember where it was built), builds consumers with
# find_package(wavejit) and with pkg-config, and runs them.   check_package.sh <build dir> <source dir> <cc> <cxx>
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
prefix=$work/prefix
pc=$(find "$prefix" -name wavejit.pc)
lib=$(dirname "$(dirname "$pc")")

# Relocated: what is loaded by name is looked for beside who asks, and nowhere that a build machine knew.
for file in "$prefix"/bin/* "$lib"/libwavejit*.so; do
  runpath=$(objdump -p "$file" | awk '/RUNPATH|RPATH/ { print $2 }')
  [[ -z $runpath || $runpath == "\$ORIGIN" || $runpath == "\$ORIGIN/../${lib#"$prefix/"}" ]] ||
    fail "${file#"$prefix/"} looks for libraries in '$runpath'"
  elsewhere=$(ldd "$file" | awk '/libwavejit/ { print $3 }' | grep -v "^$prefix/" || true)
  [[ -z $elsewhere ]] || fail "${file#"$prefix/"} loads $elsewhere"
done
[[ -z $(find "$prefix" -type f \( -name '*.cmake' -o -name '*.pc' \) -exec grep -lF -e "$build" -e "$work/first" {} +) ]] ||
  fail "a CMake or pkg-config file names the folder of the build or of the first install"

# build_with_cmake <source dir> <build dir>: in one piece, as headers are most of what the compiler reads
build_with_cmake() {
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON >/dev/null
  cmake --build "$2" >/dev/null
}
build_with_cmake "$source/tests/package/consumer" "$work/consumer"
build_with_cmake "$prefix/share/doc/libwavejit-dev/examples/serving_engine" "$work/example"
# A build that is not installed says so.
if cmake -S "$source/tests/package/consumer" -B "$work/not_installed" -G Ninja -Dwavejit_DIR="$build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" >"$work/told.txt" 2>&1; then
  fail "find_package takes a build that is not installed"
fi
tr -s '\n ' ' ' <"$work/told.txt" | grep -F 'is a build of wavejit and no installation' >/dev/null || { cat "$work/told.txt"; fail "find_package does not say what a build lacks"; }
export PKG_CONFIG_PATH=$lib/pkgconfig
[[ $(pkg-config --modversion wavejit) == "$("$prefix/bin/wavejit" version | sed -n 's/^wavejit \([0-9.]*\).*/\1/p')" ]] ||
  fail "wavejit.pc says version $(pkg-config --modversion wavejit)"
# shellcheck disable=SC2046
"$cc" "$source/tests/package/consumer/consumer.c" -o "$work/consumer_cc" $(pkg-config --cflags --libs wavejit)

# A fresh install, moved: the packaged kernels are found without being told where, and nothing is compiled or written.
export XDG_CACHE_HOME=$work/fresh
for program in consumer/consumer_c consumer/consumer_cpp; do
  WAVEJIT_LOG_LEVEL=info "$work/$program" 2>"$work/first.txt"
  grep -q 'loaded from disk' "$work/first.txt" || { cat "$work/first.txt"; fail "$program found no packaged kernel"; }
  if grep -q ' compile ' "$work/first.txt"; then cat "$work/first.txt"; fail "$program compiled"; fi
done
[[ -z $(find "$work/fresh" -name '*.wavejit' 2>/dev/null) ]] || fail "a packaged kernel was written to the cache"
"$prefix/bin/wavejit" cache stats | grep '^layer .*/share/wavejit/kernels.wavejit-archive: 4 entries' || fail "wavejit cache stats does not name the packaged kernels"

export XDG_CACHE_HOME=$work/cache WAVEJIT_CACHE_PACKAGED=off
"$work/consumer/consumer_c"
"$work/consumer/consumer_cpp"
LD_LIBRARY_PATH=$lib "$work/consumer_cc"
"$prefix/bin/wavejit" supported >/dev/null
"$prefix/bin/wavejit" prebuild --list-presets | grep '^llama-3-8b ' >/dev/null || fail "the moved install does not find its presets"
grep -q '^\.TH WAVEJIT 1' "$prefix/share/man/man1/wavejit.1" || fail "no manual page is installed"
for script in bash-completion/completions/wavejit zsh/site-functions/_wavejit fish/vendor_completions.d/wavejit.fish; do
  grep -q 'explain' "$prefix/share/$script" || fail "no $script is installed"
done
"$prefix/bin/wavejit" cache verify
entries=$(find "$work/cache" -name '*.wavejit' | wc -l)
[[ $entries -ge 1 ]] || fail "the consumers left no cache entry"

# What `wavejit sim` puts in front of a program's libraries was installed, too.
"$prefix/bin/wavejit" sim --target gfx950 --front hip -- sh -c 'test -e "${LD_LIBRARY_PATH%%:*}/libamdhip64.so.7"' || fail "sim --front hip"
if ldconfig -p | grep libhsa-runtime64.so.1 >/dev/null; then
  "$prefix/bin/wavejit" sim --target gfx950 -- sh -c 'test -e "${LD_LIBRARY_PATH%%:*}/libdtif.so"' || fail "sim"
fi

unset WAVEJIT_CACHE_PACKAGED
# The example as a serving image has it: kernels in an archive, no compiler.
"$work/example/serving_engine" --print-list >"$work/list.txt"
"$prefix/bin/wavejit" prebuild --target gfx950 --list "$work/list.txt" --cache-dir "$work/built"
"$prefix/bin/wavejit" cache pack "$work/kernels.wavejit-archive" --cache-dir "$work/built"
rm "$lib/libwavejit_codegen.so" "$prefix/bin/wavejit-compile"
"$work/example/serving_engine" --archive "$work/kernels.wavejit-archive" --prepare --seal | tee "$work/served.txt"
grep -q 'compiled 0,' "$work/served.txt" || fail "the example did not say that nothing was compiled"
echo "package: consumers run against the moved install, $entries cache entries"
