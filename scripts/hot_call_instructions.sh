#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How many instructions a hot call executes: the same number on a busy machine as on an idle one, where nanoseconds are
# not. Two runs of different lengths under valgrind's callgrind; their difference is the calls' alone.
#
#   hot_call_instructions.sh <build dir> [filter] [functions]
#
# `filter` chooses benchmarks of bench/hot_call_benchmark.cpp. With `functions` > 0 the dearest ones follow.
set -euo pipefail
build=$1
filter=${2:-'^hot_call/default_stream/threads:1|^hot_paged_call|^hot_latent_call|^hot_mixed_call'}
functions=${3:-0}
if ! command -v valgrind >/dev/null; then
  echo "[instructions] installing valgrind" >&2
  apt-get install -y --no-install-recommends valgrind >/dev/null
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$build/bin/wavejit_bench_hot_call
few=1000
many=3000
# One count a benchmark: "<instructions> <calls>".
count() {
  valgrind --tool=callgrind --toggle-collect='wavejit_attention_*' --callgrind-out-file="$folder/$2" "$program" \
    --benchmark_filter="^$1\$" --benchmark_min_time="$2x" 2>&1 >/dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
for benchmark in $("$program" --benchmark_list_tests --benchmark_filter="$filter"); do
  fewer=$(count "$benchmark" $few)
  more=$(count "$benchmark" $many)
  printf '%-44s %6d instructions a call\n' "$benchmark" $(((more - fewer) / (many - few)))
  if ((functions > 0)); then
    callgrind_annotate --inclusive=no "$folder/$many" | grep 'wavejit::' | sed -n "1,${functions}p" | cut -c1-160
  fi
done
