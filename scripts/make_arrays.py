#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes q.npy, k.npy and v.npy for the demo: normal float32 values from a seed.

    make_arrays.py <folder> [--batch B] [--queries Sq] [--keys Sk] [--heads Hq/Hkv] [--head-dim D] [--seed N]
"""
import argparse
import pathlib

import numpy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--keys", type=int, default=333)
    parser.add_argument("--heads", default="8/2")
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--seed", type=int, default=2026)
    arguments = parser.parse_args()
    query_heads, kv_heads = (int(x) for x in arguments.heads.split("/"))
    random = numpy.random.default_rng(arguments.seed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, length, heads in (("q", arguments.queries, query_heads), ("k", arguments.keys, kv_heads), ("v", arguments.keys, kv_heads)):
        shape = (arguments.batch, length, heads, arguments.head_dim)
        numpy.save(arguments.folder / f"{name}.npy", random.standard_normal(shape, dtype=numpy.float32))


if __name__ == "__main__":
    main()
