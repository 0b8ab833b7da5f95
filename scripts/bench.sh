#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every benchmark of a build.   bench.sh <build dir> [filter]
set -euo pipefail
build=$1
filter=${2:-.*}
for program in "$build"/bin/wavejit_bench_*; do
  printf '\n[bench] %s\n' "$(basename "$program")"
  "$program" --benchmark_filter="$filter" --benchmark_counters_tabular=true
done
