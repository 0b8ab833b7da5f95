#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Debian 12's C library to link with, and its Python 3.11's headers, in a folder: packages by name, checked with Debian's keys,
# unpacked and not installed.   sysroot.sh <folder>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/host/settings.sh
packages=(libc6 libc6-dev libpython3.11-dev)
folder=$(realpath -m "$1")
stamp=$folder/made-of.txt
if [[ -f $stamp && $(head -n 1 "$stamp") == "${packages[*]}" ]]; then exit 0; fi

apt=$folder.apt
rm -rf "$folder" "$apt"
mkdir -p "$folder.part" "$apt/lists/partial" "$apt/archives/partial" "$apt/packages"
rm -rf "${folder:?}.part"/*
: >"$apt/status"
printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bookworm main\n' "$(debian_mirror)" >"$apt/sources.list"
# A state of its own: this system's lists and packages are neither read nor touched.
options=(-q -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o "Dir::Etc::sourcelist=$apt/sources.list"
         -o Dir::Etc::sourceparts=- -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts=- -o APT::Architecture=amd64 -o APT::Sandbox::User=root)
if ! { apt-get "${options[@]}" update && cd "$apt/packages" && apt-get "${options[@]}" download "${packages[@]}"; } >"$apt/log" 2>&1; then
  cat "$apt/log"
  printf '[wheel] Debian 12 could not be had from %s\n' "$(debian_mirror)"
  exit 1
fi
for package in "$apt"/packages/*.deb; do dpkg-deb --extract "$package" "$folder.part"; done
# Links to / would lead to this system's own libraries.
find "$folder.part" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do ln -sfrn "$folder.part$target" "$link"; done
{
  printf '%s\n' "${packages[*]}"
  basename -a "$apt"/packages/*.deb
} >"$folder.part/made-of.txt"
mv "$folder.part" "$folder"
rm -rf "$apt"
