#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs one fuzz target for some seconds.   run_fuzz.sh <program> <seeds> <seconds> <where to keep what it finds>
# What it finds grows a corpus of its own beside the seeds; an input that breaks something is kept and named.
set -euo pipefail
program=$1 seeds=$2 seconds=$3 found=$4
name=$(basename "$program")
mkdir -p "$found/$name"
# Seeds from a fixed number: the same build does the same work, as far as its speed lets it.
exec "$program" "$found/$name" "$seeds" -seed=1 -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=1024 -timeout=10 \
  -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/$name-broken-"
