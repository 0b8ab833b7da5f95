#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The main job, as a user would do it: arrays in, one attention call on a simulated GPU, a checked result out; first with an
# empty cache, then again in a new process.   demo.sh <build dir>
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '\n[demo] %s\n' "$*"; }

say "making q [1, 300, 8, 128], k and v [1, 333, 2, 128] from a seed"
/usr/bin/python3 scripts/make_arrays.py "$work"
call=("$build/bin/wavejit" run attention_forward --q "$work/q.npy" --k "$work/k.npy" --v "$work/v.npy"
      --lse "$work/lse.npy" --causal --device sim:gfx950 --check)
export WAVEJIT_CACHE_DIR=$work/cache

say "cold: the kernel is emitted, lowered, linked, published, launched"
"${call[@]}" --out "$work/cold.npy" | tee "$work/cold.txt"
say "warm: a new process finds it on disk and never loads the compiler"
"${call[@]}" --out "$work/warm.npy" | tee "$work/warm.txt"

/usr/bin/python3 - "$work" <<'PYTHON'
import sys
import numpy
work = sys.argv[1]
cold, warm = numpy.load(f"{work}/cold.npy"), numpy.load(f"{work}/warm.npy")
if not numpy.array_equal(cold, warm):
    sys.exit("[demo] the warm answer differs from the cold one")
if "compiled" not in open(f"{work}/cold.txt").read() or "disk" not in open(f"{work}/warm.txt").read():
    sys.exit("[demo] the cache did not do its part")
print(f"\n[demo] done: O {list(cold.shape)} matches float64, cold and warm answers are the same bits (simulated gfx950)")
PYTHON
