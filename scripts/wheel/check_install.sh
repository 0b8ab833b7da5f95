#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs wheels with pip on a clean Debian 12 and a clean Debian 13 and uses them there: the demo from an empty cache, the
# program, the isolated compiler, `wavejit sim`, C++ compiled by that system's own compiler.   check_install.sh <folder with the wheels> [work dir]
# Where ROCm is on this system, also a HIP program on it with the wheel's simulated GPU beneath.
# Needs root, the network (PyPI for numpy) and debootstrap.
set -euo pipefail
wheels=$(realpath "$1")
work=${2:-$(mktemp -d)}
mkdir -p "$work"
work=$(realpath "$work")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/host/settings.sh
started=$SECONDS
say() { printf '[wheel %4ds] %s\n' "$((SECONDS - started))" "$*"; }
fail() { say "FAIL: $*"; exit 1; }
[[ $(id -u) == 0 ]] || fail "a chroot needs root"
command -v debootstrap >/dev/null || fail "debootstrap is not installed (apt-get install debootstrap)"

root=
leave() {
  if [[ -n $root ]]; then umount "$root/proc" 2>/dev/null || true; fi
  if [[ -z ${WAVEJIT_KEEP_ROOT:-} && -n $root ]]; then rm -rf --one-file-system "$root"; fi
}
trap leave EXIT
inside() {
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ${authority:+PIP_CERT=/root/authority.crt} "$@"
}

# use <release of Debian>
use() {
  root=$work/$1
  if [[ ! -x $root/usr/bin/python3 || ! -x $root/usr/bin/cmake ]]; then
    say "a minimal Debian: $1 (a minute or two)"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,g++,pkg-config,cmake,make "$1" "$root" "$(debian_mirror)" >"$work/debootstrap.log" 2>&1 ||
      { tail -n 5 "$work/debootstrap.log"; fail "debootstrap"; }
  fi
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp /etc/hosts "$root/etc/hosts"
  authority=$(certificates)
  if [[ -n $authority ]]; then cp "$authority" "$root/root/authority.crt"; fi
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  rm -rf "$root/wheels" "$root/venv" "$root/root/.cache"
  cp -r "$wheels" "$root/wheels"
  inside python3 -m venv /venv
  local began=$SECONDS
  inside pip install -q 'numpy>=1.26' || fail "$1: numpy from PyPI"
  # Which of the wheels is this Python's, pip decides.
  inside pip install -q --no-index --find-links /wheels wavejit || fail "$1: pip does not install it"
  inside python3 -m wavejit demo || fail "$1: the demo"
  local seconds=$((SECONDS - began))
  say "$1, $(inside python3 --version), $(inside ldd --version | head -n 1): installed, and a first checked result, in $seconds s"
  [[ $seconds -le 60 ]] || fail "$1: that is more than 60 s"
  inside wavejit supported >"$work/supported.txt" || fail "$1: the program"
  inside env WAVEJIT_COMPILE=isolated wavejit prebuild --target gfx950 "attention_forward bf16 b1 q1 k1 h8/2 d64" --cache-dir /root/isolated ||
    fail "$1: wavejit-compile"
  inside wavejit prebuild --target gfx942 "attention_forward fp16 b1 q64 k64 h8/2 d64 causal" --cache-dir /root/isolated || fail "$1: prebuild"
  inside wavejit cache verify --cache-dir /root/isolated || fail "$1: wavejit cache verify"
  inside env WAVEJIT_SIM_ENGINE=compile python3 -m wavejit demo >"$work/compiled.txt" || fail "$1: the compiled engine"
  inside python3 -c 'import ctypes, pathlib, wavejit; ctypes.CDLL(str(pathlib.Path(wavejit.__file__).parent / "lib/libwavejit_remote.so"))' ||
    fail "$1: the remote layer does not load"
  inside wavejit sim --target gfx950 --front hip -- python3 -c 'import ctypes; assert ctypes.CDLL("libamdhip64.so.7").hipGetDevice(ctypes.byref(ctypes.c_int())) == 0' ||
    fail "$1: wavejit sim --front hip"
  cp -r tests/package/consumer examples/serving_engine "$root/root/"
  # shellcheck disable=SC2016
  inside sh -c 'export PKG_CONFIG_PATH=$(python3 -m wavejit --pkg-config-dir)
    g++ -std=c++17 /root/consumer/consumer.cpp -o /root/by_pkg_config $(pkg-config --cflags --libs wavejit) -Wl,-rpath,$(pkg-config --variable=libdir wavejit)' ||
    fail "$1: C++ against the package, by pkg-config"
  inside /root/by_pkg_config || fail "$1: a C++ program over the package, by pkg-config"
  # shellcheck disable=SC2016
  inside sh -c 'for project in consumer serving_engine; do
      cmake -S /root/$project -B /root/built/$project "-Dwavejit_DIR=$(python3 -m wavejit --cmake-dir)" && cmake --build /root/built/$project || exit 1
    done' >"$work/cmake.txt" 2>&1 || { tail -n 20 "$work/cmake.txt"; fail "$1: C++ against the package, by CMake"; }
  inside /root/built/consumer/consumer_cpp || fail "$1: a C++ program over the package, by CMake"
  inside /root/built/serving_engine/serving_engine --cache-dir /root/served >"$work/served.txt" || fail "$1: the example over the package"
  tail -n 1 "$work/served.txt"
  inside pip uninstall -q -y wavejit
  leave
}

# The page's program, on the wheel's own HIP and on AMD's HIP and ROCr of this system, which a clean one has not.
use_rocm() {
  local place=$work/here device_libraries way
  say "a HIP program on this system's ROCm, and on the wheel's HIP"
  /usr/bin/python3 -m venv --clear --without-pip "$place"
  /usr/bin/python3 -m pip --python "$place/bin/python3" --quiet --disable-pip-version-check install --no-index --no-deps --find-links "$wheels" wavejit ||
    fail "pip does not install it here"
  sed -n '/^```cpp$/,/^```$/p' docs/start/simulated-gpu-only.md | sed '1d;$d' >"$work/saxpy.hip"
  device_libraries=$(clang++-22 -print-resource-dir)/amdgcn/bitcode
  clang++-22 -x hip --offload-arch=gfx950 "--rocm-device-lib-path=$device_libraries" "$work/saxpy.hip" -o "$work/saxpy" -lamdhip64 || fail "saxpy.hip is not compiled"
  for way in --front=rocr --front=rocr-model --front=hip; do
    "$place/bin/wavejit" sim --target gfx950 "$way" -- "$work/saxpy" >"$work/saxpy.txt" || fail "a HIP program, $way: $(cat "$work/saxpy.txt")"
    grep -Fx 'y[0] = 7, y[999] = 7' "$work/saxpy.txt" >/dev/null || fail "a HIP program, $way, says $(cat "$work/saxpy.txt")"
  done
}

if ldconfig -p | grep -F libhsa-runtime64.so.1 >/dev/null && command -v clang++-22 >/dev/null; then use_rocm; else say "no ROCm here: the wheel is not tried beneath it"; fi
use bookworm
use trixie
say "the wheels install and work on Debian 12 and 13"
