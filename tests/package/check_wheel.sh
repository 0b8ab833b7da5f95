#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What makes wheels, without making them: the check of what libraries want of other systems must find the libraries of this build
# wanting, which are for Debian 13; what packs must make a wheel that pip takes. Where ./dev wheel has been, also what it left.
#   check_wheel.sh <build dir> <source dir> <cc> <cxx>
set -euo pipefail
build=$1
lib=$build/lib
source=$2
cc=$3
cxx=$4
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
# Two builds of the same files are the same bytes: neither times of files nor the order of a folder show.
mkdir "$scratch/again"
cp -r "$scratch/installed/wavejit" "$scratch/again/"
find "$scratch/again" -exec touch -d 2001-01-01 {} +
again=$("$source/scripts/wheel/pack.py" "$scratch/again" py3-none-any "$scratch/wheels-again")
cmp "$wheel" "$again" || fail "the same files make another wheel"
/usr/bin/python3 -m pip --quiet --disable-pip-version-check install --no-index --no-deps --target "$scratch/site" "$wheel" 2>"$scratch/pip.txt" ||
  fail "pip does not take what pack.py makes: $(cat "$scratch/pip.txt")"
[[ $(PYTHONPATH=$scratch/site /usr/bin/python3 -c 'import wavejit; print(wavejit.version)') == "as packed" ]] || fail "the package does not come out as it went in"
[[ $("$scratch/site/wavejit/bin/wavejit") == program ]] || fail "a program comes out without its mode"
PYTHONPATH=$scratch/site /usr/bin/python3 - <<'PYTHON' || fail "what pip reads of it is not what pyproject.toml says"
import importlib.metadata
told = importlib.metadata.metadata("wavejit")
assert told["Requires-Python"] == ">=3.11", told["Requires-Python"]
assert any("wavejit.example" in one for one in told.get_all("Project-URL")), told.get_all("Project-URL")
assert "Programming Language :: C++" in told.get_all("Classifier")
bill = importlib.metadata.distribution("wavejit").read_text("sboms/wavejit.spdx.json")
assert "openssl" in bill and "SPDX-2.3" in bill
assert any(one.startswith("numpy") for one in told.get_all("Requires-Dist")), told.get_all("Requires-Dist")
found = {entry.group: entry.value for entry in importlib.metadata.distribution("wavejit").entry_points}
assert found == {"console_scripts": "wavejit._program:main", "vllm.general_plugins": "wavejit.vllm:register",
                 "sglang.srt.plugins": "wavejit.sglang:register"}, found
PYTHON

# The package as pip leaves it, of this build's libraries, with the modules of the tree: C and C++ are built against it, and
# `wavejit sim` finds what belongs in front of a program.
package=$scratch/whole/wavejit
cmake --install "$build" --component python --prefix "$scratch/whole" >/dev/null
cp -r "$source/python/wavejit/." "$package/"
of_package() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$scratch/whole /usr/bin/python3 -m wavejit "$@"; }
[[ $(of_package --cmake-dir) == "$package/lib/cmake/wavejit" ]] || fail "--cmake-dir: $(of_package --cmake-dir)"
[[ $(of_package --include-dir) == "$package/include" ]] || fail "--include-dir: $(of_package --include-dir)"
if PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$build/python /usr/bin/python3 -m wavejit --cmake-dir 2>"$scratch/told.txt"; then fail "a build's package has no CMake files"; fi
grep -F 'is not there: an installed package has it' "$scratch/told.txt" >/dev/null || fail "--cmake-dir of a build says $(cat "$scratch/told.txt")"
projects=(tests/package/consumer)
if [[ -n ${WAVEJIT_TEST_WHOLE:-} ]]; then projects+=(examples/serving_engine); fi
for project in "${projects[@]}"; do
  cmake -S "$source/$project" -B "$scratch/$project" -G Ninja "-Dwavejit_DIR=$(of_package --cmake-dir)" "-DCMAKE_C_COMPILER=$cc" "-DCMAKE_CXX_COMPILER=$cxx" >"$scratch/cmake.txt" 2>&1 ||
    fail "$project is not configured: $(grep -A8 Error "$scratch/cmake.txt")"
  cmake --build "$scratch/$project" >"$scratch/cmake.txt" 2>&1 || fail "$project is not compiled: $(tail -n 20 "$scratch/cmake.txt")"
done
export XDG_CACHE_HOME=$scratch/cache
"$scratch/tests/package/consumer/consumer_cpp" || fail "a C++ program with the package's library"
[[ -z ${WAVEJIT_TEST_WHOLE:-} ]] || "$scratch/examples/serving_engine/serving_engine" --print-list >/dev/null || fail "the example with the package's library"
# shellcheck disable=SC2046
PKG_CONFIG_PATH=$(of_package --pkg-config-dir) && export PKG_CONFIG_PATH
"$cc" "$source/tests/package/consumer/consumer.c" -o "$scratch/consumer_c" $(pkg-config --cflags --libs wavejit) "-Wl,-rpath,$package/lib"
"$scratch/consumer_c" || fail "a C program by pkg-config"
if [[ -n $(find "$package" -type l ! -name 'libwavejit.so.0') ]]; then fail "links, which wheels have not: $(find "$package" -type l)"; fi
of_package sim --target gfx950 --front hip -- /usr/bin/python3 - <<'PYTHON' || fail "sim --front hip"
import ctypes
hip, count = ctypes.CDLL("libamdhip64.so.7"), ctypes.c_int()
assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0 and count.value == 1, count
PYTHON
if ldconfig -p | grep libhsa-runtime64.so.1 >/dev/null; then
  of_package sim --target gfx950 -- sh -c 'test -e "${LD_LIBRARY_PATH%%:*}/libdtif.so"' || fail "sim"
fi

# Where the toolchain is not, pip install . names what is missing and what to do; nothing is looked for.
mkdir "$scratch/path"
for program in cmake ninja; do ln -s "$(command -v "$program")" "$scratch/path/$program"; done
if PATH=$scratch/path cmake -S "$source" -B "$scratch/pip" -G Ninja -DSKBUILD=2 -DCMAKE_CXX_COMPILER=clang++-22 >"$scratch/pip.txt" 2>&1; then fail "pip install . without a compiler"; fi
tr -s ' \n' ' ' <"$scratch/pip.txt" >"$scratch/told.txt"
grep -F 'these are not on the PATH: clang-22, clang++-22, ld.lld-22.' "$scratch/told.txt" >/dev/null || fail "pip install . without a compiler says $(cat "$scratch/told.txt")"
grep -F './dev wheel, then python -m pip install' "$scratch/told.txt" >/dev/null || fail "pip install . names no ./dev wheel: $(cat "$scratch/told.txt")"
if grep -F 'CMAKE_CXX_COMPILER' "$scratch/told.txt" >/dev/null; then fail "CMake's own words: $(cat "$scratch/told.txt")"; fi

# What stands in for NVIDIA's libraries says what it lacks in one line.
for arguments in "" "$scratch/path"; do
  if /usr/bin/python3 "$source/scripts/torch_stubs.py" $arguments 2>"$scratch/told.txt"; then fail "torch_stubs.py $arguments"; fi
  grep -E '^torch_stubs.py <site-packages>: ' "$scratch/told.txt" >/dev/null || fail "torch_stubs.py $arguments says $(cat "$scratch/told.txt")"
done
mkdir -p "$scratch/packages/torch/lib"
if PATH=$scratch/path /usr/bin/python3 "$source/scripts/torch_stubs.py" "$scratch/packages" 2>"$scratch/told.txt"; then fail "torch_stubs.py without a compiler"; fi
grep -F 'torch_stubs.py: no C compiler is on the PATH' "$scratch/told.txt" >/dev/null || fail "torch_stubs.py without a compiler says $(cat "$scratch/told.txt")"

if [[ -d $source/build/wheel/installed ]]; then check "$source/build/wheel/installed" "$source/build/wheel/lib" || fail "what ./dev wheel left"; fi
echo "wheels are packed and judged as promised"
