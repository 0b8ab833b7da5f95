#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# clang-tidy on one file; leaves a stamp when it is clean. Called by lint.sh with "file|stamp".
set -euo pipefail
unit=${1%%|*}
stamp=${1#*|}
if output=$(clang-tidy-22 --quiet -p build/lint "$unit" 2>/dev/null); then
  : > "$stamp"
else
  printf '%s\n' "$output"
  exit 1
fi
