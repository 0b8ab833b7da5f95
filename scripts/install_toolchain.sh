#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs what wavejit builds with, by package name, on Debian 13.
#
#   install_toolchain.sh                        on Debian 13: packages are only added; exit code 3 if that does not do
#   install_toolchain.sh --host                 on Debian 12 too: its C library and Python become Debian 13's
#   install_toolchain.sh --is-installed [root]  exit code 0 if it has run here, or in that root
#
# g++ 14 and the C library that ROCm's packages need come from Debian 13 (trixie), LLVM 22 too. ROCm itself (HIP headers,
# the real HIP library, comgr) is in Debian experimental. The suites are read from the mirror that this machine already
# uses; experimental is pinned below the machine's own suites, in files named wavejit.*: removing those two files undoes
# everything but the installed packages.
#
# Running it twice changes nothing: a stamp named by this list makes the second run a few milliseconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

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
  # the Python package
  python3-dev python3-nanobind libdlpack-dev
  # tests and the demo
  python3 python3-numpy strace file valkey-server
  # the page of wavejit profile in a browser: the smallest one that draws and dumps a page without a screen (98 MB with
  # what it needs; chromium is 130, and firefox, 83, cannot print the page that its scripts made)
  chromium-headless-shell fonts-dejavu-core
  # the documents as a site
  python3-sphinx python3-myst-parser furo
  # ./dev bench peers: Triton in an environment of its own
  python3-venv python3-pip
)
# ROCm's parts. Where they cannot be had, their tests fail, unless WAVEJIT_WITHOUT_ROCM=1 leaves them out.
rocm=(libamdhip64-dev libamd-comgr-dev rocm-device-libs-22)

. scripts/host/settings.sh
say() { printf '[toolchain] %s\n' "$*"; }

if [[ ${WAVEJIT_WITHOUT_ROCM:-0} == 1 ]]; then rocm=(); fi
stamps=/var/lib/wavejit/toolchain
stamp=$(printf '%s\n' "${required[@]}" "${rocm[@]}" | sha256sum | cut -c1-32)
if [[ ${1:-} == --is-installed ]]; then
  [[ -e ${2:-}$stamps/$stamp ]]
  exit
fi
if [[ ${1:-} != --again && -e $stamps/$stamp ]]; then exit 0; fi

is_debian_12() ( . /etc/os-release && [[ ${ID:-} == debian && ${VERSION_CODENAME:-} == bookworm ]] )
if ! is_debian_13 && ! { [[ ${1:-} == --host ]] && is_debian_12; }; then
  say "this is $(host_name); the script knows Debian 13, and Debian 12 with --host"
  say "install the equivalents of these packages by hand, then run ./dev with WAVEJIT_SKIP_INSTALL=1:"
  printf '  %s\n' "${required[@]}" "${rocm[@]}"
  exit 1
fi
if [[ $(id -u) != 0 ]]; then
  say "installing packages here needs root"
  exit 1
fi

# The host's own lists are read beside ours; what they name is not named twice.
mirror=$(debian_mirror)
sources=/etc/apt/sources.list.d/wavejit.sources
pins=/etc/apt/preferences.d/wavejit
key=/usr/share/keyrings/debian-archive-keyring.gpg
{
  # Not by the release's name: once packages of trixie are on a Debian 12, it calls itself trixie.
  if ! grep -rqsw --exclude=wavejit.sources trixie /etc/apt/sources.list /etc/apt/sources.list.d; then
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n\n' "$mirror" "$key"
  fi
  # Mirrors refresh experimental's index late; its signature is checked all the same, only its date is not.
  if [[ ${#rocm[@]} -gt 0 ]]; then
    printf 'Types: deb\nURIs: %s\nSuites: experimental\nComponents: main\nSigned-By: %s\nCheck-Valid-Until: no\n' "$mirror" "$key"
  fi
} >"$sources"
{
  if [[ ${1:-} == --host ]]; then
    printf 'Package: *\nPin: release n=trixie\nPin-Priority: 900\n\nPackage: *\nPin: release n=bookworm\nPin-Priority: 100\n\n'
  fi
  cat <<'PINS'
Package: *
Pin: release a=experimental
Pin-Priority: 1

Package: libamdhip64-dev libamdhip64-7 libamd-comgr-dev libamd-comgr3 libhsa-runtime-dev libhsa-runtime64-1 libhiprtc7 libhiprtc-builtins7 rocm-device-libs-22
Pin: release a=experimental
Pin-Priority: 910
PINS
} >"$pins"

export DEBIAN_FRONTEND=noninteractive
apt_options=(-y -q -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 --no-install-recommends)
# other_changes <package…>: what installing them would do beside adding packages.
other_changes() { apt-get "${apt_options[@]}" --simulate install "$@" 2>/dev/null | awk '/^Remv / || (/^Inst / && $3 ~ /^\[/) { print $2 }'; }

log=$(mktemp)
say "reading package lists"
apt-get "${apt_options[@]}" update >/dev/null
if inside_root; then
  dpkg --configure -a  # goes on with what was interrupted
elif [[ ${1:-} != --host ]]; then
  changes=$(other_changes "${required[@]}") || changes="apt finds no way to add what is missing"
  if [[ -n $changes ]]; then
    rm -f "$sources" "$pins"
    say "adding packages does not do; these would have to change: $(echo "$changes" | head -n 8 | tr '\n' ' ')"
    exit 3
  fi
fi
say "installing ${#required[@]} packages (about a minute on a fresh machine)"
# The tests start a valkey server of their own: one that this script brings is neither started nor left to the next boot.
server_is_ours=1
if dpkg-query -W -f '${db:Status-Status}' valkey-server 2>/dev/null | grep -qx installed; then server_is_ours=0; fi
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
if ! apt-get "${apt_options[@]}" install "${required[@]}" 2>"$log" |
  awk '/^(Setting up|Unpacking)/ { n++; if (n % 100 == 0) printf "[toolchain]   %d steps\n", n }'; then
  cat "$log"
  exit 1
fi
if [[ $server_is_ours == 1 ]] && ! inside_root; then
  if command -v systemctl >/dev/null; then systemctl disable valkey-server >/dev/null 2>&1 || true; fi
  if command -v update-rc.d >/dev/null; then update-rc.d valkey-server disable >/dev/null 2>&1 || true; fi
fi
if [[ ${#rocm[@]} -gt 0 ]]; then
  say "installing ROCm's HIP and comgr"
  changes=
  if ! inside_root && [[ ${1:-} != --host ]]; then changes=$(other_changes "${rocm[@]}") || changes=unknown; fi
  if [[ -n $changes ]] || ! apt-get "${apt_options[@]}" install "${rocm[@]}" >"$log" 2>&1; then
    tail -n 3 "$log"
    say "HIP and comgr are not to be had: their tests will fail. './dev install' tries again; WAVEJIT_WITHOUT_ROCM=1 leaves the tests out"
  fi
fi
rm -f "$log"
if inside_root; then apt-get clean; fi
mkdir -p "$stamps"
: >"$stamps/$stamp"
say "done"
