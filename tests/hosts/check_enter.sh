#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What goes along into a root, and what comes out of it.   check_enter.sh <source dir>
#
# The root is a skeleton around this system's /usr: entering needs no more.
set -euo pipefail
source=$1
if [[ ${2:-} != in-namespace ]]; then
  if [[ $(id -u) != 0 ]] || ! unshare --mount true 2>/dev/null; then
    echo "left out: mount namespaces need root here"
    exit 77
  fi
  exec unshare --mount --propagation private bash "$0" "$source" in-namespace
fi
work=$(mktemp -d)
trap 'umount -l "$work/root/usr"; rm -rf --one-file-system "$work"' EXIT
failed=0
complain() { echo "FAIL: $*"; failed=1; }
# same <what> <expected> <found>
same() { [[ $2 == "$3" ]] || complain "$1: expected '$2', found '$3'"; }

mkdir -p "$work"/root/{usr,proc,sys,dev,tmp,etc,var,wavejit/home} "$work/tree" "$work/shared"
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$work/root/$folder"; done
cp -a /etc/alternatives /etc/ld.so.cache "$work/root/etc/"
mount --bind /usr "$work/root/usr"
cp -r "$source/scripts" "$work/tree/"
echo tree >"$work/tree/word"
echo shared >"$work/shared/word"
chmod -R a+rX "$work"
export CCACHE_DIR=$work/ccache
unset PIP_CONFIG_FILE

# inside <function> <command…>: from the tree, or from $from; as $as
inside() {
  local function=$1
  shift
  (
    called_from=${from:-$work/tree}
    cd "${tree:-$work/tree}"
    say() { :; }
    . scripts/host/host.sh
    namespace_way
    "$function" "$work/root" "${as:-work}" /wavejit/tree "$@"
  )
}

status=0
inside enter sh -c 'exit 7' || status=$?
same "exit code" 7 "$status"
same "the tree" tree "$(inside enter cat word)"
same "../shared" shared "$(inside enter cat ../shared/word)"
same "a path in /tmp" tree "$(inside enter cat "$work/tree/word")"
export WAVEJIT_PASSES=on CI=true SECRET_WORD=hidden
# shellcheck disable=SC2016
same "variables" "on true " "$(inside enter sh -c 'echo "$WAVEJIT_PASSES $CI $SECRET_WORD"')"
same "a folder that the root has itself" "$work/root" "$(mkdir "$work/root/marked"; inside enter sh -c "test -d /marked && echo $work/root")"
same "mounts outside" 0 "$(grep -c "$work/root/wavejit" /proc/mounts || true)"

# The caller's folder, where the root has nothing of that name.
caller=$(mktemp -d "/mnt/wavejit-caller.XXXXXX")
echo caller >"$caller/word"
same "the caller's folder" caller "$(from=$caller inside enter cat "$caller/word")"
rm -r "$caller"

# A program of the user's: a file that it writes is where it was named, or is not written.
outside=$(mktemp -d "/mnt/wavejit-outside.XXXXXX")
mkdir -p "$work/root/var/www" "$work/root/var/tmp"
for kind in user shell; do
  as=$kind inside enter sh -c "echo page >$outside/$kind.html" || complain "as $kind: a file outside of the tree cannot be written"
  same "as $kind, a file outside of the tree" page "$(cat "$outside/$kind.html" 2>/dev/null)"
done
as=user inside enter sh -c 'echo page >/var/www/a.html' 2>/dev/null && complain "a file in the root's own folders is written, and nobody finds it"
[[ ! -e $work/root/var/www/a.html ]] || complain "the root has a file of the user's"
# A folder that neither this system nor the root has: the file would lie in the root.
absent=/wavejit-absent-$$
as=user inside enter sh -c "mkdir -p $absent && echo page >$absent/a.html" 2>/dev/null && complain "a file in a folder that this system does not have is written"
[[ ! -e $work/root$absent ]] || complain "the root has a folder of the user's"
as=user inside enter sh -c 'echo kept >"$HOME/kept" && echo page >/tmp/wavejit-page-'$$ || complain "a program's home and /tmp cannot be written"
same "a page in /tmp" page "$(cat /tmp/wavejit-page-$$)"
same "a program's home" kept "$(cat "$work/root/wavejit/home/kept")"
rm "/tmp/wavejit-page-$$"
told=$(cd "$work/tree" && . scripts/host/host.sh && tell_of_no_folder "$work/root" profile --html "$absent/a.html" --json="$absent/b.json" --k /tmp/k.npy "$work/c" 2>&1)
same "what is told of such paths" 2 "$(grep -c "this system has no folder $absent. A file there would lie in $work/root$absent" <<<"$told")"
same "what is told of others" 2 "$(wc -l <<<"$told")"
# shellcheck disable=SC2016
same "PYTHONPATH of a program" "$outside" "$(as=user PYTHONPATH=$outside inside enter sh -c 'echo "$PYTHONPATH"')"
# shellcheck disable=SC2016
same "PYTHONPATH of a test" "" "$(PYTHONPATH=$outside inside enter sh -c 'echo "$PYTHONPATH"')"
rm -r "$outside"

same "a message" "$work/tree/src/a.cpp:1:2: error" "$(inside enter_readably echo '/wavejit/tree/src/a.cpp:1:2: error')"
inside enter_readably sh -c 'echo out of /wavejit/tree; echo error of /wavejit/tree >&2; exit 5' >"$work/out" 2>"$work/error" && status=0 || status=$?
same "exit code through the filter" 5 "$status"
same "standard output" "out of $work/tree" "$(cat "$work/out")"
same "standard error" "error of /wavejit/tree" "$(cat "$work/error")"

# A signal to the outer process ends the inner one, and its last words are heard.
# shellcheck disable=SC2016
bash -c '
  cd "$1"
  . scripts/host/host.sh
  namespace_way
  enter_readably "$2" work /wavejit/tree bash -c "trap \"echo ended; exit 9\" TERM; echo started; for _ in {1..200}; do sleep 0.05; done"
  ' signalled "$work/tree" "$work/root" >"$work/out" &
child=$!
for _ in $(seq 200); do grep -q started "$work/out" && break; sleep 0.05; done
kill -TERM "$child"
status=0
wait "$child" || status=$?
same "exit code after a signal" 9 "$status"
same "last words" "started ended" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')"

# Interrupts are not ignored inside, although a shell's background ignores them.
# shellcheck disable=SC2016
same "interrupts" 130 "$(inside enter_readably bash -c 'bash -c "kill -INT \$\$"; echo $?' | tail -n 1)"

# A linked worktree: its .git names a folder elsewhere.
git init -q "$work/clone"
echo x >"$work/clone/file"
git -C "$work/clone" add file
git -C "$work/clone" -c user.name=x -c user.email=x@x commit -qm one
git -C "$work/clone" worktree add -q "$work/linked"
cp -r "$source/scripts" "$work/linked/"
same "git in a linked worktree" file "$(tree=$work/linked inside enter git ls-files)"
same "the linked worktree's common folder" "$work/clone/.git" "$(. "$source/scripts/host/settings.sh"; common_git_folder "$work/linked")"

# One user, who is nobody else inside.
user=(setpriv --reuid=12345 --regid=12345 --clear-groups)
if "${user[@]}" unshare --user --map-root-user --mount true 2>/dev/null; then
  chmod 755 "$work"
  chmod 777 "$work/ccache" "$work/tree"
  # shellcheck disable=SC2016
  found=$("${user[@]}" env HOME="$work" bash -c '
    cd "$1"
    called_from=$1
    . scripts/host/host.sh
    namespace_way
    enter "$2" work /wavejit/tree sh -c "id -u; cat word; unshare --user true && echo nests"' user "$work/tree" "$work/root" | tr '\n' ' ')
  same "an ordinary user" "12345 tree nests " "$found"
  chmod 777 "$work/root" "$work/root/wavejit/home"
  # shellcheck disable=SC2016
  found=$("${user[@]}" env HOME="$work" bash -c '
    cd "$1"
    called_from=$1
    . scripts/host/host.sh
    namespace_way
    enter "$2" user /wavejit/tree sh -c "cat word; mkdir $3 2>/dev/null && echo made; true"' user "$work/tree" "$work/root" "$absent" | tr '\n' ' ')
  same "an ordinary user's program" "tree " "$found"
else
  echo "user namespaces are not to be had here: an ordinary user was not tried"
fi
[[ $failed == 0 ]] && echo "what goes into a root and comes out of it is as promised"
exit "$failed"
