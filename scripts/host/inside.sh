#!/usr/bin/env bash
# Changes the root folder of a mount namespace of its own, and runs a command there.
#
#   inside.sh <root> <as> [--bind <what> <where in the root>]… -- <command…>
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
while [[ $1 == --bind ]]; do
  if [[ -d $2 ]]; then
    mkdir -p "$root$3"
  elif [[ ! -e $root$3 ]]; then
    mkdir -p "$(dirname "$root$3")"
    : >"$root$3"
  fi
  bind "$2" "$root$3"
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
