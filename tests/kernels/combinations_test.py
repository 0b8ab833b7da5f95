#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What no golden line has: words of attention_forward in all combinations, each as a line that prebuild compiles. What a rule refuses is no fault; a kernel that spills is.

    combinations_test.py <wavejit> <target> <folder>
"""

import itertools
import pathlib
import subprocess
import sys

TYPES = ["bf16", "bf16 lse", "fp16"]
DIMS = ["d40", "d56", "d64", "d72", "d80", "d96", "d104", "d112", "d120", "d128", "d160", "d192/128", "d200/96", "d96/160", "d224", "d256"]
MASKS = ["", "causal", "window=40,17", "causal chunked=700", "causal causal_flags"]
MODIFIERS = ["", "softcap=30", "bias=1", "alibi=h", "softcap=30 bias=bh alibi=h", "bias=1 bias_type=fp32", "o=fp32", "q=fp32", "q=fp32 softcap=30 bias=bh alibi=h"]
LAYOUTS = ["", "layout=paged:16", "layout=paged:64", "layout=paged:1", "first_keys", "layout=paged:16 first_keys"]
# Few keys and many, heads packed and not, rows of small and of large workgroups, short queries beside long ones.
SHAPES = ["b1 q1 k65 h8/2", "b1 q1 k8192 h8/2", "b1 q3 k65 h8", "b1 q3 k8192 h8", "b1 q60 k300 h8", "b1 q4096 k4096 h8", "b16 q900 k8192 q_rows=915 h8/1"]
# Caches of 8 bits under queries of 16, with numbers for each token or not, in each kind of pages.
CACHES = ["cache=i8 cache_scales=token", "cache=e5m2 cache_scales=token", "cache=e5m2"]
CACHED_DIMS = ["d64", "d128", "d192/128"]
# Masks by tile, which many of those have no kernel of.
BY_TILE = ["bool_mask=1", "bool_mask=h softcap=30", "bool_mask=1 softcap=30 alibi=h", "bias=1 bias_by_tile", "bias=h bias_by_tile o=fp32",
           "softcap=30 bias=1 alibi=h bias_by_tile", "bias=1 bias_type=fp32 bias_by_tile", "softcap=30 bias=1 bias_type=fp32 alibi=h bias_by_tile"]


def main():
    wavejit, target, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    caches = [words.replace("e5m2", "e5m2_fnuz") if target == "gfx942" else words for words in CACHES]
    lines = [" ".join(f"attention_forward {' '.join(words)}".split())
             for words in (*itertools.product(TYPES, SHAPES, DIMS, MASKS, MODIFIERS, LAYOUTS),
                           *itertools.product(TYPES, SHAPES, DIMS, MASKS[:3], BY_TILE, LAYOUTS[:3]),
                           *itertools.product(TYPES, SHAPES, CACHED_DIMS, MASKS, MODIFIERS[:5], LAYOUTS, caches))]
    listed = folder / f"combinations_{target}.txt"
    listed.write_text("\n".join(lines) + "\n")
    run = subprocess.run([wavejit, "prebuild", "--target", target, "--list", str(listed), "--cache-dir", str(folder / f"cache_{target}")],
                         capture_output=True, text=True, check=False)
    failed = [line for line in run.stderr.splitlines() if "] failed " in line]
    compiled = run.stdout.strip().splitlines()[-1] if run.stdout.strip() else run.stderr[-400:]
    print(f"{len(lines)} lines: {compiled}")
    print("\n".join(failed[:40]))
    return 1 if failed or "compiled" not in compiled else 0


if __name__ == "__main__":
    sys.exit(main())
