#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes a Debian 13 in a folder: <folder>/root. Nothing is installed on this system; removing the folder undoes it.
# Sourced, with settings.sh and enter.sh.
#
# The root is made under the name root.part and gets its own when it is whole: what was interrupted is thrown away.

# debootstrap and the keys that it checks with, by version and SHA-256 (Debian 13's own).
debootstrap_packages=(
  'd/debootstrap/debootstrap_1.0.141_all.deb 8c02cb8ad712eb67afb0d23fab175c562804cc97eda70b70cb0f3bc2a21732d7'
  'd/debian-archive-keyring/debian-archive-keyring_2025.1_all.deb 9ea7778e443144ca490668737a8ab22dd3e748bb99e805e22ec055abeb3c7fac'
)

# write_downloader <file>: a wget of what there is, as far as debootstrap and fetch use one.
write_downloader() {
  cat >"$1" <<'DOWNLOADER'
#!/usr/bin/env bash
# download [-U <name>] [-nv] -O <file> <address>
while [[ $# -gt 1 ]]; do
  case $1 in
    -O) file=$2; shift 2 ;;
    -U) shift 2 ;;
    *) shift ;;
  esac
done
for wget in /usr/bin/wget /bin/wget; do
  if [[ -x $wget ]]; then exec "$wget" -q --tries=3 -O "$file" "$1"; fi
done
if command -v curl >/dev/null; then exec curl -fsSL --retry 3 -o "$file" "$1"; fi
exec /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Dir::Log::Terminal= download-file "$1" "$file" >/dev/null
DOWNLOADER
  chmod 755 "$1"
}

# fetch <path in the pool> <SHA-256> <file>: from the mirror, or from Debian's archive of all versions.
fetch() {
  local from
  for from in "$(debian_mirror)" http://snapshot.debian.org/archive/debian/20250901T000000Z; do
    if "$tools/bin/wget" -O "$3" "$from/pool/main/$1" && echo "$2  $3" | sha256sum --check --status; then return; fi
  done
  say "$1 is neither on the mirror nor at snapshot.debian.org, or is not what it should be"
  return 1
}

unpack_package() {
  mkdir -p "$2"
  if command -v dpkg-deb >/dev/null; then
    dpkg-deb --fsys-tarfile "$1" | tar -x --no-same-owner -C "$2"
  else
    ar p "$1" data.tar.xz | tar -xJ --no-same-owner -C "$2"
  fi
}

# bootstrap <folder> <root>: a minimal Debian 13, its packages checked against Debian's keys.
bootstrap() {
  local tools=$1/debootstrap root=$2 package foreign=()
  rm -rf "$tools"
  mkdir -p "$tools/bin"
  write_downloader "$tools/bin/wget"
  for package in "${debootstrap_packages[@]}"; do
    # shellcheck disable=SC2086  # a path and a sum
    fetch $package "$tools/package.deb"
    unpack_package "$tools/package.deb" "$tools"
  done
  # One user who is nobody else: owners are pretended, from the first package on.
  if [[ $as_one_user == 1 ]]; then foreign=(--foreign --include=fakeroot); fi
  TAR_OPTIONS=${foreign:+--no-same-owner} DEBOOTSTRAP_DIR=$tools/usr/share/debootstrap PATH=$tools/bin:$PATH:/usr/sbin:/sbin \
    "${way[@]}" sh "$tools/usr/sbin/debootstrap" --arch=amd64 --variant=minbase "${foreign[@]}" \
    --keyring="$tools/usr/share/keyrings/debian-archive-keyring.gpg" trixie "$root" "$(debian_mirror)"
  if [[ ${#foreign[@]} -gt 0 ]]; then
    # On what looks like Docker the first stage leaves a link, which would point to itself inside.
    if [[ -L $root/proc ]]; then
      rm "$root/proc"
      mkdir "$root/proc"
    fi
    # shellcheck disable=SC2016
    "${way[@]}" bash scripts/host/inside.sh "$root" root -- /bin/sh -c '
      for package in /var/cache/apt/archives/*fakeroot_*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --no-same-owner -C /
      done
      ln -sf fakeroot-sysv /usr/bin/fakeroot
      ln -sf faked-sysv /usr/bin/faked
      FAKEROOTDONTTRYCHOWN=1 exec fakeroot-sysv -- /debootstrap/debootstrap --second-stage'
  fi
}

# furnish <root>: how this host reaches mirrors goes along; no service starts there.
furnish() {
  local root=$1
  rm -f "$root/etc/apt/sources.list"
  printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
    "$(debian_mirror)" >"$root/etc/apt/sources.list.d/debian.sources"
  apt_settings >"$root/etc/apt/apt.conf.d/80host"
  printf 'APT::Sandbox::User "root";\n' >"$root/etc/apt/apt.conf.d/90one-user"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  rm -f "$root/etc/resolv.conf"
  : >"$root/etc/resolv.conf"
  mkdir -p "$root/wavejit/home"
  # From here on the folder is taken for a root.
  printf 'Made by ./dev of wavejit. Removing the folder above undoes it.\n' >"$root/etc/wavejit-root"
}

# make_root <folder>
make_root() {
  local folder=$1 lock
  mkdir -p "$folder"
  exec {lock}>"$folder/lock"
  flock "$lock"
  if [[ ! -e $folder/root/etc/wavejit-root ]]; then
    # A root gets its name when it is whole: whatever else stands here is not ours to remove.
    if [[ -e $folder/root ]]; then
      say "$folder/root is there, and ./dev has not made it: choose another folder with WAVEJIT_DEBIAN_13"
      exit 1
    fi
    rm -rf --one-file-system "$folder/root.part"
    # Not in a condition, and no && between the two: there, a failure would not end the subshell.
    set +e
    (
      set -e
      bootstrap "$folder" "$folder/root.part"
      furnish "$folder/root.part"
    ) >"$folder/log" 2>&1
    local status=$?
    set -e
    if [[ $status != 0 ]]; then
      cat "$folder/root.part/debootstrap/debootstrap.log" >>"$folder/log" 2>/dev/null || true
      tail -n 5 "$folder/log"
      say "Debian 13 could not be made: $folder/log has it all. ./dev starts afresh next time"
      exit 1
    fi
    mv "$folder/root.part" "$folder/root"
  fi
  exec {lock}>&-
}
