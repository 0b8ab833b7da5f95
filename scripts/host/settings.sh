#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What a host is, and what of it goes along into the Debian 13 root. Sourced.

root_folder() { realpath -m "${WAVEJIT_DEBIAN_13:-build/debian-13}"; }

# A root that make_root.sh made has this file.
inside_root() { [[ -e /etc/wavejit-root ]]; }

is_debian_13() (
  [[ -r /etc/os-release ]] && . /etc/os-release && [[ ${ID:-} == debian && ${VERSION_CODENAME:-} == trixie ]]
)

host_name() (
  if [[ -r /etc/os-release ]]; then . /etc/os-release; fi
  printf '%s\n' "${PRETTY_NAME:-an unknown system}"
)

# The mirror that this machine already uses, in either of apt's two notations; another system asks Debian's own.
debian_mirror() {
  local found=${WAVEJIT_MIRROR:-} file
  if [[ -z $found && $( . /etc/os-release 2>/dev/null; echo "${ID:-}") == debian ]]; then
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/*.sources; do
      if [[ -z $found && -r $file ]]; then found=$(sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' "$file" | grep -m 1 -v security || true); fi
    done
    if [[ -z $found && -r /etc/apt/sources.list ]]; then
      found=$(sed -n 's/^deb[[:space:]]\+\(\[[^]]*\][[:space:]]*\)\?\([^[:space:]]\+\)[[:space:]].*/\2/p' /etc/apt/sources.list | grep -m 1 -v security || true)
    fi
  fi
  printf '%s\n' "${found:-http://deb.debian.org/debian}"
}

# The host's certificates: its own file, or where the distributions keep theirs.
certificates() {
  local file
  for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
    if [[ -n $file && -r $file ]]; then realpath "$file"; return; fi
  done
}

# How apt reaches its mirrors here: proxies, dates, retries.
apt_settings() {
  if command -v apt-config >/dev/null; then
    apt-config dump 2>/dev/null | grep -E '^Acquire::(https?::[^C]|ftp::|Retries|Check-Valid-Until|Check-Date|ForceIPv|IndexTargets::deb::DEP-11)' | grep -v ' "";$' || true
  fi
  printf 'Acquire::Languages "none";\nAcquire::https::CaInfo "/wavejit/certificates.crt";\n'
}

# The compiler cache is the host's, so that roots and clones share it.
compiler_cache() {
  local old=$HOME/.ccache
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/ccache
  if [[ -d $old && ! -d $folder ]]; then folder=$old; fi
  printf '%s\n' "${CCACHE_DIR:-$folder}"
}

# The .git folder that a linked worktree's own .git file names; nothing for a plain clone.
common_git_folder() {
  local tree=$1 folder common=.
  if [[ ! -f $tree/.git ]]; then return; fi
  folder=$(sed -n 's/^gitdir: //p' "$tree/.git")
  folder=$(cd "$tree" && realpath -m "$folder")
  if [[ -r $folder/commondir ]]; then common=$(<"$folder/commondir"); fi
  folder=$(cd "$folder" 2>/dev/null && realpath -m "$common") || return 0
  if [[ -d $folder ]]; then printf '%s\n' "$folder"; fi
}

# Packages and versions of this system, one a line, to be compared after a run; nothing where dpkg is not.
installed_packages() {
  if command -v dpkg-query >/dev/null; then
    dpkg-query ${1:+--admindir="$1"} -W -f '${Package}:${Architecture} ${Version} ${db:Status-Status}\n' 2>/dev/null |
      grep ' installed$' | LC_ALL=C sort
  fi
}
