#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the libraries export and need.   check_libraries.sh <library dir>
set -euo pipefail
lib=$1
failed=0
complain() { echo "FAIL: $*"; failed=1; }

exports() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u; }

others=$(exports "$lib/libwavejit.so" | grep -v '^wavejit_' || true)
[[ -z $others ]] || complain "libwavejit.so exports more than wavejit_*: $(echo "$others" | head -n 5 | tr '\n' ' ')"
exports "$lib/libwavejit.so" | grep -x wavejit_attention_forward >/dev/null || complain "libwavejit.so does not export wavejit_attention_forward"

[[ $(exports "$lib/libwavejit_codegen.so") == wavejit_codegen_table ]] ||
  complain "libwavejit_codegen.so exports: $(exports "$lib/libwavejit_codegen.so" | head -n 5 | tr '\n' ' ')"

[[ $(exports "$lib/libwavejit_remote.so") == wavejit_remote_table ]] ||
  complain "libwavejit_remote.so exports: $(exports "$lib/libwavejit_remote.so" | head -n 5 | tr '\n' ' ')"

[[ $(exports "$lib/libwavejit_simgpu_compile.so") == wavejit_simgpu_compile_table ]] ||
  complain "libwavejit_simgpu_compile.so exports: $(exports "$lib/libwavejit_simgpu_compile.so" | head -n 5 | tr '\n' ' ')"

others=$(exports "$lib/libwavejit_simgpu.so" | grep -vE '^(wavejit_simgpu_|hip|__hip|_Z[0-9]+hip)' || true)
[[ -z $others ]] || complain "libwavejit_simgpu.so exports more than HIP: $(echo "$others" | head -n 5 | tr '\n' ' ')"

# (HIP itself exports hipExtModuleLaunchKernel under its C++ name.)

# Never grep -q behind a pipe: it ends at the first match, and who then writes to nobody fails the pipe, which hides the
# match. needs <library> <pattern>
needs() { ldd "$lib/$1" | grep -iE "$2" >/dev/null; }

# No LLVM behind the runtime, and no HIP: it is opened by name when a device is.
if needs libwavejit.so 'llvm|clang|lld|amdhip|comgr'; then complain "libwavejit.so needs: $(ldd "$lib/libwavejit.so")"; fi
if strings -a "$lib/libwavejit.so" | grep 'LLVM ERROR' >/dev/null; then complain "libwavejit.so has LLVM inside"; fi
# hiredis, libssl and libcrypto are inside the library of the remote layer, and nowhere else.
for library in libwavejit.so libwavejit_remote.so; do
  if needs "$library" 'hiredis|libcrypto|libssl|libzstd|libz\.'; then complain "$library needs: $(ldd "$lib/$library")"; fi
done
if strings -a "$lib/libwavejit.so" | grep 'Protocol error, got' >/dev/null; then complain "libwavejit.so has hiredis inside"; fi
strings -a "$lib/libwavejit_remote.so" | grep 'Protocol error, got' >/dev/null || complain "the check for hiredis finds it nowhere"
for library in libwavejit_codegen.so libwavejit_simgpu.so libwavejit_simgpu_compile.so; do
  if needs "$library" 'libLLVM|amdhip'; then complain "$library needs: $(ldd "$lib/$library")"; fi
done
[[ $failed == 0 ]] && echo "exports and dependencies are as promised"
exit $failed
