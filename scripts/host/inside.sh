#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Changes the root folder of a mount namespace of its own, and runs a command there.
#
#   inside.sh <root> <as> [<mount>]… -- <command…>
#
# A mount is `--bind <what> <where in the root>`; `--show` is the same with whatever is mounted below, and goes on where
# that cannot be had; `--read-only <folder of the root>`, of which `/` is the root without what is mounted below it.
#
# <as> is `root`, or `<uid>:<gid>`, an ordinary user.
# Mounts are seen by this process and its children only, and end with them.
set -euo pipefail
root=$1
as=$2
shift 2

# A user's namespace must take along what is mounted below a folder.
bind() { mount --bind "$1" "$2" 2>/dev/null || mount --rbind "$1" "$2"; }

mount --make-rprivate /
mount --rbind "$root" "$root"
for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
bind /tmp "$root/tmp"
while [[ $1 != -- ]]; do
  if [[ $1 == --read-only ]]; then
    if [[ $2 == / ]]; then
      mount -o remount,bind,ro "$root"
    elif [[ -d $root$2 ]]; then
      mount --bind "$root$2" "$root$2"
      mount -o remount,bind,ro "$root$2"
    fi
    shift 2
    continue
  fi
  if [[ -d $2 ]]; then
    mkdir -p "$root$3"
  elif [[ ! -e $root$3 ]]; then
    mkdir -p "$(dirname "$root$3")"
    : >"$root$3"
  fi
  if [[ $1 == --bind ]]; then
    bind "$2" "$root$3"
  elif ! mount --rbind "$2" "$root$3" 2>/dev/null && ! mount --bind "$2" "$root$3" 2>/dev/null; then
    echo "./dev: $3 cannot be shown to the program: files there are not this system's" >&2
  fi
  shift 3
done
shift

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
change=()
cd "$root"
# A host that is itself a chroot cannot pivot.
if pivot_root . . 2>/dev/null; then
  umount -l .
  cd /
else
  change=(chroot "$root")
fi
if [[ $as != root ]]; then change+=(unshare --user "--map-user=${as%%:*}" "--map-group=${as##*:}" --); fi
exec "${change[@]}" "$@"
