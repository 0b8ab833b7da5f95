#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Where ./dev does its work: on this system, or in a Debian 13 below build/. Sourced by ./dev.
#
#   Debian 13, root     here. Packages are only added.
#   anything else       in build/debian-13 (WAVEJIT_DEBIAN_13 names another folder, which several clones may share).
#                       Nothing of the host changes; removing that folder undoes it.
#   --host              here, on Debian 12 too: its C library and Python become Debian 13's.
. scripts/host/settings.sh
. scripts/host/enter.sh
. scripts/host/make_root.sh

# work_where_it_belongs <word of ./dev…>: returns where the work is to be done here; goes into the root otherwise.
work_where_it_belongs() {
  local folder status=0
  local again=
  if [[ $1 == install ]]; then again=--again; fi
  folder=$(root_folder)
  if [[ ${WAVEJIT_SKIP_INSTALL:-0} == 1 ]]; then return; fi
  if inside_root; then
    scripts/install_toolchain.sh
    return
  fi
  if [[ ${on_host:-} == 1 ]]; then
    scripts/install_toolchain.sh --host
    install_is_done
    return
  fi
  # A root that is there is used: whoever made one on Debian 13 had a reason.
  if is_debian_13 && [[ -z ${WAVEJIT_DEBIAN_13:-} && ! -e $folder/root/etc/wavejit-root ]]; then
    if [[ -z $again ]] && scripts/install_toolchain.sh --is-installed; then return; fi
    if [[ $(id -u) == 0 ]]; then
      scripts/install_toolchain.sh ${again:+"$again"} || status=$?
      if [[ $status == 0 ]]; then
        install_is_done
        return
      fi
      if [[ $status != 3 ]]; then exit "$status"; fi
    fi
  fi
  if ! namespace_way; then
    say "this is $(host_name), and neither root nor user namespaces are to be had: './dev --host $*' as root works here and changes this system; the Containerfile works in Docker and podman"
    exit 1
  fi
  if [[ ! -e $folder/root/etc/wavejit-root ]]; then
    say "this is $(host_name): making a Debian 13 in ${folder#"$PWD/"} (3 GB, about three minutes); this system stays as it is, and removing that folder undoes it"
    make_root "$folder"
  fi
  if [[ -n ${again:-} ]] || ! scripts/install_toolchain.sh --is-installed "$folder/root"; then
    # With the lock: two clones may share a root.
    (
      flock 9
      enter "$folder/root" setup /wavejit/tree scripts/install_toolchain.sh ${again:+"$again"}
    ) 9>"$folder/lock" || exit $?
  fi
  install_is_done
  go_into "$folder/root" "$@"
}

# go_into <root> <word of ./dev…>
go_into() {
  local root=$1 inside=/wavejit/tree as=shell
  shift
  case $1 in
    run | shell)
      # Where the caller is, as far as that can be seen from inside. What a program prints is not touched.
      if [[ $called_from == "$PWD" || $called_from == "$PWD"/* ]]; then
        inside+=${called_from#"$PWD"}
      elif ! of_the_system "$called_from" || [[ $called_from == /tmp* ]]; then
        inside=$called_from
      fi
      if [[ $1 == run ]]; then
        as=user
        tell_of_no_folder "$root" "${@:3}"
      fi
      enter "$root" "$as" "$inside" /wavejit/tree/dev "$@"
      ;;
    *) enter_readably "$root" work "$inside" ./dev "$@" ;;
  esac
}
