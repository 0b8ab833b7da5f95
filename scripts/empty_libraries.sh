#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Libraries of ROCm that a program is linked with, or opens, and that Debian has not, or for a newer C library only: one that has
# every name of theirs, whose functions do nothing and answer 0. What calls more of them than their start has no right result.
#
#   empty_libraries.sh <folder to fill> <shared object of the program>…
set -euo pipefail
folder=$1
shift
mkdir -p "$folder"
# Those that are here, or are fetched (scripts/rocm_programs.sh), and stay out of it.
here='libamdhip64.so.7 libhiprtc.so.7 libamd_comgr.so.3 libhsa-runtime64.so.1 libnuma.so.1 libc.so.6 libm.so.6 libstdc++.so.6 libgcc_s.so.1 ld-linux-x86-64.so.2'
empty='librocprofiler-sdk-attach.so.1 librocprofiler-sdk-rocpd.so.1 librocprofiler-sdk-roctx.so.1 librocprofiler-sdk.so.1 librocprofiler-register.so.0
  librccl.so.1 librocm-core.so.1 libroctracer64.so.4 librocm_smi64.so.1 libMIOpen.so.1 libhipsolver.so.1 librocsparse.so.1 librocsolver.so.0 libhipsparse.so.4
  libhipsparselt.so.0 libhipblas.so.3 libhipblaslt.so.1 libhipfft.so.0 libhiprand.so.1'
names() { llvm-nm-22 -D "$1" "${@:2}" 2>/dev/null | awk '{ sub(/@.*/, "", $NF); print $NF }'; }
for file in "$@"; do names "$file" --undefined-only; done | sort -u >"$folder/wanted"
for name in $here; do names "$(/sbin/ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')" --defined-only; done | sort -u >"$folder/given"
# Functions that it is linked with, and those that it looks for by name.
{
  comm -23 "$folder/wanted" "$folder/given" | grep -vE '^_?Py|^_|^(rocfft_|rocblas_|roctx)'
  strings -n 6 "$@" | grep -E '^(miopen[A-Z]|hipblasLt|hipsolver|hipsparse|rocsolver_|nccl[A-Z]|rsmi_|roctracer_|rocprofiler_|hipfft|hiprand)[A-Za-z0-9_]*$'
} | sort -u | awk '{ print ".globl " $1 "\n.type " $1 ",@function\n" $1 ":" } END { print "xorl %eax, %eax\nret\n.section .note.GNU-stack,\"\",@progbits" }' \
  >"$folder/nothing.s"
clang-22 -shared "$folder/nothing.s" -o "$folder/libnothing.so"
for name in $empty; do ln -sf libnothing.so "$folder/$name"; done
