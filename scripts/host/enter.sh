#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs commands in the Debian 13 root. Sourced, with settings.sh.
#
# Where things are inside, whatever the clone's path: the tree in /wavejit/tree, ../shared in /wavejit/shared, the compiler
# cache in /wavejit/ccache. One path for all clones, so that they share compiled files and compiled headers. The tree, its
# common .git folder and the caller's folder are also where they are outside.

# The words before a command that give it a mount namespace in which it may mount; and whether it is root there, or one user
# who is called root. namespace_way sets them.
way=()
as_one_user=1

namespace_way() {
  local try
  for try in root user bwrap podman; do
    as_one_user=1
    case $try in
      root) way=(unshare --mount --propagation private) as_one_user=0 ;;
      user) way=(unshare --user --map-root-user --mount --propagation private) ;;
      bwrap) way=(bwrap --unshare-user --uid 0 --gid 0 --cap-add ALL --dev-bind / /) ;;
      podman) way=(podman unshare) ;;
    esac
    if [[ $try == root && $(id -u) != 0 ]]; then continue; fi
    if command -v "${way[0]}" >/dev/null && "${way[@]}" mount --rbind /tmp /tmp >/dev/null 2>&1; then return; fi
  done
  return 1
}

# Folders of the system, which the root has itself.
of_the_system() { [[ $1 =~ ^/(bin|boot|dev|etc|lib[^/]*|proc|run|sbin|sys|tmp|usr|var|wavejit)?(/|$) ]]; }

# Where a user's files may be: every folder of this system that a Debian 13 does not bring itself. One a line.
folders_of_the_user() {
  local root=$1 folder
  for folder in /*; do
    if [[ ! -d $folder || ! -r $folder ]] || of_the_system "$folder"; then continue; fi
    if [[ $folder == /opt && -n $(ls -A "$root/opt" 2>/dev/null) ]]; then continue; fi
    printf '%s\n' "$folder"
  done
}

# tell_of_no_folder <root> <argument…>: says which paths lie in a folder that this system does not have. A program would find it empty
# and read-only.
tell_of_no_folder() {
  local root=$1 argument path top
  shift
  for argument in "$@"; do
    path=${argument#*=}
    if [[ $path != /*/* ]]; then continue; fi
    top=${path#/}
    top=/${top%%/*}
    if [[ $top == / || -e $top || -e $root$top ]]; then continue; fi
    printf "./dev run: %s: this system has no folder %s. A file there would lie in %s, where nobody finds it, and is not written; accepted: folders of this system\n" \
      "$path" "$top" "$root$top" >&2
  done
}

# Which of the host's variables go along.
passed_on() {
  case $1 in
    # A user's program is a user's business; a test of ours must not read packages of another Python.
    PYTHONPATH) [[ $users_files == 1 ]]; return ;;
    WAVEJIT_DEBIAN_13 | CCACHE_DIR | CCACHE_BASEDIR | PIP_CERT | PIP_CONFIG_FILE) return 1 ;;
    WAVEJIT_* | CCACHE_* | CTEST_* | GTEST_* | NINJA_* | PIP_* | CI | GITHUB_ACTIONS | SOURCE_DATE_EPOCH) return 0 ;;
    TERM | COLORTERM | NO_COLOR | CLICOLOR | CLICOLOR_FORCE | COLUMNS | LINES | TZ) return 0 ;;
    http_proxy | https_proxy | ftp_proxy | no_proxy | all_proxy | HTTP_PROXY | HTTPS_PROXY | FTP_PROXY | NO_PROXY | ALL_PROXY) return 0 ;;
  esac
  return 1
}

# enter <root> <as> <folder inside> <command…>: the command replaces this process; exit codes and signals are its own.
#
#   setup  may install packages there
#   work   sees the tree and the caller's folder
#   shell  sees every folder of the user's
#   user   the same, and can write nothing that is the root's own but its home: a file there is none that the user would find
enter() {
  local root=$1 as=$2 folder=$3 tree git cache pip binds=() variables=() name authority owner=root users_files=0
  if [[ $as == user || $as == shell ]]; then users_files=1; fi
  shift 3
  tree=$(realpath .)
  cache=$(compiler_cache)
  mkdir -p "$cache"
  if [[ $users_files == 1 ]]; then
    while IFS= read -r name; do binds+=(--show "$(realpath "$name")" "$name"); done < <(folders_of_the_user "$root")
    if [[ $as == user ]]; then
      for name in /boot /etc /run /usr /var; do binds+=(--read-only "$name"); done
    fi
    if [[ -d /var/tmp && -w /var/tmp ]]; then binds+=(--bind /var/tmp /var/tmp); fi
  fi
  binds+=(--bind "$tree" /wavejit/tree --bind "$cache" /wavejit/ccache)
  if [[ -d $tree/../shared ]]; then binds+=(--bind "$(realpath "$tree/../shared")" /wavejit/shared); fi
  if ! of_the_system "$tree"; then binds+=(--bind "$tree" "$tree"); fi
  git=$(common_git_folder "$tree")
  if [[ -n $git ]] && ! of_the_system "$git"; then binds+=(--bind "$git" "$git"); fi
  if [[ -n ${called_from:-} && $called_from != "$tree"* ]] && ! of_the_system "$called_from"; then
    binds+=(--bind "$called_from" "$called_from")
  fi
  for name in resolv.conf hosts; do
    if [[ -r /etc/$name ]]; then binds+=(--bind "$(realpath "/etc/$name")" "/etc/$name"); fi
  done
  # apt's passwords stay where they are.
  for name in auth.conf auth.conf.d; do
    if [[ -e /etc/apt/$name ]]; then binds+=(--bind "/etc/apt/$name" "/etc/apt/$name"); fi
  done
  if [[ -d /var/lib/dpkg ]]; then binds+=(--bind /var/lib/dpkg /wavejit/host/dpkg); fi

  for name in $(compgen -e); do
    if passed_on "$name"; then variables+=("$name=${!name}"); fi
  done
  variables+=(HOME=/wavejit/home PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8)
  variables+=(CCACHE_DIR=/wavejit/ccache "WAVEJIT_TREE_OUTSIDE=$tree")
  # git refuses the tree of another user, whom root is here.
  variables+=(GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory 'GIT_CONFIG_VALUE_0=*')
  authority=$(certificates)
  if [[ -n $authority ]]; then
    binds+=(--bind "$authority" /wavejit/certificates.crt)
    for name in SSL_CERT_FILE PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO; do
      variables+=("$name=/wavejit/certificates.crt")
    done
  fi
  for pip in "${PIP_CONFIG_FILE:-}" "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf" /etc/pip.conf; do
    if [[ -n $pip && -r $pip && $pip != /dev/null ]]; then
      binds+=(--bind "$(realpath "$pip")" /wavejit/pip.conf)
      variables+=(PIP_CONFIG_FILE=/wavejit/pip.conf)
      break
    fi
  done

  # Behind all mounts, since these make folders.
  if [[ $as == user ]]; then binds+=(--bind "$root/wavejit/home" /wavejit/home --read-only /); fi

  if [[ $as_one_user == 1 ]]; then
    # Packages have files of other users: one user pretends to give them away.
    if [[ $as == setup ]]; then
      set -- fakeroot -- "$@"
      variables+=(FAKEROOTDONTTRYCHOWN=1)
    else
      owner=$(id -u):$(id -g)
    fi
  fi
  # shellcheck disable=SC2016
  exec "${way[@]}" bash scripts/host/inside.sh "$root" "$owner" "${binds[@]}" -- \
    /usr/bin/env -i "${variables[@]}" /bin/bash -c 'cd "$1" && shift && exec "$@"' enter "$folder" "$@"
}

# enter_readably: the same, with paths of the tree in what is printed to a file or a pipe as they are outside.
enter_readably() {
  if [[ -t 1 ]]; then enter "$@"; fi
  local child filter status signal outside
  outside=$(realpath . | sed 's/[&\|]/\\&/g')
  exec 3> >(trap '' INT TERM HUP; exec sed -u "s|/wavejit/tree|$outside|g")
  filter=$!
  # A shell without job control lets its background ignore interrupts: undone.
  if [[ /dev/stdout -ef /dev/stderr ]]; then
    (enter "$@") <&0 >&3 2>&3 3>&- &
  else
    (enter "$@") <&0 >&3 3>&- &
  fi
  child=$!
  exec 3>&-
  for signal in INT TERM HUP; do
    # shellcheck disable=SC2064
    trap "kill -$signal $child 2>/dev/null" "$signal"
  done
  while :; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
  wait "$filter" || true
  exit "$status"
}
