#!/usr/bin/env bash
# Installs what wavejit builds with, by package name, on Debian 12 or Debian 13.
#
# Debian 12 has LLVM 22 in its own security suite; g++ 14 and the newer C library that ROCm's packages need come from
# Debian 13 (trixie). ROCm itself (HIP headers, the real HIP library, comgr) is in Debian experimental on both. The
# extra suites are read from the mirror that this machine already uses; they are pinned below the machine's own suites,
# in files named wavejit.*: removing those two files undoes everything but the installed packages.
#
# Running it twice changes nothing: a stamp with the list of packages makes the second run a few milliseconds.
set -euo pipefail

required=(
  # compilers and build
  g++-14 clang-22 lld-22 cmake ninja-build ccache pkg-config git ca-certificates
  # packing: dpkg-shlibdeps; the clean system of ./dev package check
  dpkg-dev debootstrap
  # LLVM and LLD as libraries; format and tidy
  llvm-22-dev llvm-22-tools liblld-22-dev clang-format-22 clang-tidy-22 libclang-rt-22-dev
  zlib1g-dev libzstd-dev
  # libraries (README.md says why each)
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libxtensor-dev libxxhash-dev libssl-dev libhiredis-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  # tests and the demo
  python3 python3-numpy strace file valkey-server
  # the page of wavejit profile in a browser: the smallest one that draws and dumps a page without a screen (98 MB with
  # what it needs; chromium is 130, and firefox, 83, cannot print the page that its scripts made)
  chromium-headless-shell fonts-dejavu-core
  # ./dev bench peers: Triton in an environment of its own
  python3-venv python3-pip
)
# ROCm's parts are wanted, not required: without them HIP C++ kernels are not compiled by the tests and the comgr
# lowering is not tested, and configuring says so.
rocm=(libamdhip64-dev libamd-comgr-dev rocm-device-libs-22)

say() { printf '[toolchain] %s\n' "$*"; }

stamp=/var/lib/wavejit/toolchain.stamp
wanted=$( (cat "${BASH_SOURCE[0]}"; . /etc/os-release; echo "$VERSION_CODENAME") | sha256sum | cut -d' ' -f1)
if [[ -f $stamp && $(cat "$stamp") == "$wanted" ]]; then exit 0; fi

. /etc/os-release
if [[ ${ID:-} != debian || ( ${VERSION_CODENAME:-} != bookworm && ${VERSION_CODENAME:-} != trixie ) ]]; then
  say "this is ${PRETTY_NAME:-an unknown system}; the script knows Debian 12 (bookworm) and Debian 13 (trixie)."
  say "install the equivalents of these packages by hand, then run ./dev with WAVEJIT_SKIP_INSTALL=1:"
  printf '  %s\n' "${required[@]}" "${rocm[@]}"
  exit 1
fi
if [[ $(id -u) != 0 ]]; then
  say "installing packages needs root: run ./dev once as root, or install them yourself and set WAVEJIT_SKIP_INSTALL=1"
  exit 1
fi

# The mirror of the machine's own suite, in either of apt's two notations; a file that is not there is no error.
mirror=$(sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1 || true)
if [[ -z $mirror ]]; then
  mirror=$(sed -n 's/^deb[[:space:]]\+\(\[[^]]*\][[:space:]]*\)\?\([^[:space:]]\+\)[[:space:]].*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1 || true)
fi
if [[ -z $mirror ]]; then say "found no Debian mirror in /etc/apt/sources.list or debian.sources"; exit 1; fi

# Mirrors refresh experimental's index late; its signature is checked all the same, only its date is not.
{
  # Not by the release's name: once packages of trixie are on a Debian 12, it calls itself trixie.
  if ! grep -rqsw --exclude=wavejit.sources trixie /etc/apt/sources.list /etc/apt/sources.list.d; then
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n\n' "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg
  fi
  printf 'Types: deb\nURIs: %s\nSuites: experimental\nComponents: main\nSigned-By: %s\nCheck-Valid-Until: no\n' "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg
} > /etc/apt/sources.list.d/wavejit.sources
cat > /etc/apt/preferences.d/wavejit <<PINS
Package: *
Pin: release n=trixie
Pin-Priority: 900

Package: *
Pin: release n=bookworm
Pin-Priority: 100

Package: *
Pin: release a=experimental
Pin-Priority: 1

Package: libamdhip64-dev libamdhip64-7 libamd-comgr-dev libamd-comgr3 libhsa-runtime-dev libhsa-runtime64-1 libhiprtc7 libhiprtc-builtins7 rocm-device-libs-22
Pin: release a=experimental
Pin-Priority: 910
PINS

export DEBIAN_FRONTEND=noninteractive
apt_options=(-y -q -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0)
say "reading package lists"
apt-get "${apt_options[@]}" update >/dev/null
say "installing ${#required[@]} packages (about a minute on a fresh machine)"
# The tests start a valkey server of their own: one that this script brings is neither started nor left to the next boot.
server_is_ours=1
if dpkg-query -W -f '${db:Status-Status}' valkey-server 2>/dev/null | grep -qx installed; then server_is_ours=0; fi
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
apt-get "${apt_options[@]}" --no-install-recommends install "${required[@]}" | awk '/^(Setting up|Unpacking)/ { n++; if (n % 20 == 0) printf "[toolchain]   %d steps\n", n }'
if [[ $server_is_ours == 1 ]]; then
  if command -v systemctl >/dev/null; then systemctl disable valkey-server >/dev/null 2>&1 || true; fi
  if command -v update-rc.d >/dev/null; then update-rc.d valkey-server disable >/dev/null 2>&1 || true; fi
fi
say "installing ROCm's HIP and comgr"
if ! apt-get "${apt_options[@]}" --no-install-recommends install "${rocm[@]}" >/tmp/wavejit-rocm-install.log 2>&1; then
  say "HIP and comgr are not to be had from this mirror; going on without them (see /tmp/wavejit-rocm-install.log)"
fi
mkdir -p "$(dirname "$stamp")"
echo "$wanted" > "$stamp"
say "done"
