#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs .deb packages on a clean Debian 13 and uses them there: the program, the compiler, a C consumer through
# pkg-config, the example through CMake.   check_deb.sh <folder with the .deb> [work dir]
# Needs root, the network and debootstrap. Files that the checks need are made here: the clean system has no numpy.
set -euo pipefail
packages=$(realpath "$1")
work=${2:-$(mktemp -d)}
mkdir -p "$work"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
say() { printf '[deb %4ds] %s\n' "$((SECONDS - started))" "$*"; }
fail() { say "FAIL: $*"; exit 1; }
[[ $(id -u) == 0 ]] || fail "a chroot needs root"
command -v debootstrap >/dev/null || fail "debootstrap is not installed (apt-get install debootstrap)"
compgen -G "$packages/wavejit_*.deb" >/dev/null || fail "$packages has no wavejit_….deb; ./dev package makes them"

root=$work/trixie
inside() { chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
leave() {
  umount "$root/proc" 2>/dev/null || true
  [[ -n ${WAVEJIT_KEEP_ROOT:-} ]] || rm -rf --one-file-system "$root"
}
trap leave EXIT

# The mirror of this machine.
mirror=$(sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1 || true)
if [[ ! -x $root/usr/bin/apt-get ]]; then
  say "a minimal Debian 13 (about two minutes)"
  debootstrap --variant=minbase trixie "$root" "${mirror:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 ||
    { tail -n 5 "$work/debootstrap.log"; fail "debootstrap"; }
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/proc" && mount -t proc proc "$root/proc"

mkdir -p "$root/packages" "$root/check"
cp "$packages"/*.deb "$root/packages/"
cp tests/package/consumer/consumer.c "$root/check/"
/usr/bin/python3 scripts/make_arrays.py "$root/check"
inside apt-get -q update >"$work/apt.log" 2>&1 || { tail -n 5 "$work/apt.log"; fail "apt-get update"; }

say "the runtime alone"
inside sh -c 'apt-get install -y --no-install-recommends /packages/libwavejit0_*.deb' >>"$work/apt.log" 2>&1 ||
  { tail -n 20 "$work/apt.log"; fail "libwavejit0 does not install"; }
inside sh -c 'ldconfig -p | grep libwavejit.so.0 >/dev/null' || fail "the loader does not find libwavejit.so.0"
say "all of it, with apt"
inside sh -c 'apt-get install -y --no-install-recommends /packages/*.deb' >>"$work/apt.log" 2>&1 ||
  { tail -n 20 "$work/apt.log"; fail "the packages do not install"; }
unmet=$(inside sh -c 'ldd /usr/bin/wavejit /usr/bin/wavejit-compile $(dpkg -L libwavejit0 wavejit | grep "\.so") | grep "not found"' || true)
[[ -z $unmet ]] || fail "not found: $unmet"

say "a first call of a fresh system is a disk hit"
inside env WAVEJIT_LOG_LEVEL=info wavejit run attention_forward --q /check/q.npy --k /check/k.npy --v /check/v.npy --out /check/o.npy \
  --causal --device sim:gfx950 2>"$work/first.txt" || { cat "$work/first.txt"; fail "wavejit run"; }
grep -q 'loaded from disk' "$work/first.txt" || { cat "$work/first.txt"; fail "no packaged kernel was found"; }
grep -q ' compile ' "$work/first.txt" && { cat "$work/first.txt"; fail "a kernel was compiled"; }
inside wavejit cache verify || fail "the packaged kernels are damaged"

say "wavejit: an attention call, prebuild, an isolated compile"
inside wavejit version
inside wavejit run attention_forward --q /check/q.npy --k /check/k.npy --v /check/v.npy --out /check/o.npy --causal --check \
  --device sim:gfx950 || fail "wavejit run"
inside wavejit prebuild --target gfx942,gfx950 "attention_forward fp16 b1 q1 k1 h8/2 d64 causal" --cache-dir /check/built ||
  fail "wavejit prebuild"
inside env WAVEJIT_COMPILE=isolated wavejit prebuild --target gfx950 "attention_forward bf16 b1 q1 k1 h8/2 d64" \
  --cache-dir /check/isolated || fail "wavejit-compile is not found"
inside wavejit cache verify --cache-dir /check/built || fail "wavejit cache verify"

say "a C compiler, then the consumer through pkg-config"
inside apt-get install -y --no-install-recommends gcc g++ libc6-dev pkg-config cmake make >>"$work/apt.log" 2>&1 ||
  { tail -n 20 "$work/apt.log"; fail "gcc, g++, cmake"; }
inside sh -c 'cc /check/consumer.c -o /check/consumer $(pkg-config --cflags --libs wavejit)' || fail "the consumer does not build"
inside /check/consumer || fail "the consumer does not run"

say "the serving example through CMake, with this system's own compiler"
inside sh -c 'cmake -S /usr/share/doc/libwavejit-dev/examples/serving_engine -B /check/example >/dev/null &&
              cmake --build /check/example >/dev/null' || fail "the example does not build"
inside /check/example/serving_engine --cache-dir /check/cache --miss-log /check/misses.txt || fail "the example does not run"
inside sh -c 'wavejit prebuild --target gfx950 --list /check/misses.txt --cache-dir /check/from_log &&
              wavejit cache pack /check/kernels.wavejit-archive --cache-dir /check/from_log' || fail "prebuild from the miss log"
inside /check/example/serving_engine --archive /check/kernels.wavejit-archive --list /check/misses.txt --seal >"$work/served.txt" ||
  { cat "$work/served.txt"; fail "the example does not serve from the archive"; }
grep -q 'compiled 0,' "$work/served.txt" || fail "the archive did not do: $(grep '^cache' "$work/served.txt")"

say "and off again"
inside apt-get purge -y libwavejit0 wavejit wavejit-kernels libwavejit-dev >>"$work/apt.log" 2>&1 || fail "the packages do not leave"
left=$(inside sh -c 'find /usr -name "*wavejit*"' || true)
[[ -z $left ]] || fail "left behind: $left"
say "the packages install, work and leave on a clean Debian 13"
