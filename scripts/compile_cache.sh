#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How ccache is used: also for compiled headers, and never across paths. Sourced by ./dev.
#
# A compiled header names the folder that it was made in. So what is cached is found again at the same path only. Clones
# share it in the Debian 13 root, where each of them is in /wavejit/tree; on a native Debian 13 each fills its own.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_HASHDIR=1 CCACHE_BASEDIR=
# What a file includes comes from the compiler: running the preprocessor first would read every header twice, a quarter of a build
# from nothing.
export CCACHE_DEPEND=1
unset CCACHE_NOHASHDIR
# Three presets with their compiled headers are more than ccache's own limit, 5 GB. A limit of the user's counts.
if [[ -z ${CCACHE_MAXSIZE:-} ]] && ! grep -qs '^max_size' "${CCACHE_DIR:-$HOME/.cache/ccache}/ccache.conf"; then
  export CCACHE_MAXSIZE=20G
fi
