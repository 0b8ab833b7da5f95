# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of latent attention as the problem descriptors of all calls that an engine may make of it."""
from __future__ import annotations

from typing import NamedTuple

# Rows are heads times queries. The kernels have one of these numbers of rows a workgroup (docs/latent-attention.md), so there is a line
# below and above each.
ROWS_OF_KERNELS = (32, 64, 128)


class LatentKind(NamedTuple):
    """What layers have alike that go through the same kernels."""

    dtype: str  # of queries and output
    heads: int
    width: int  # columns of a row of the cache
    value_dim: int  # how many of these columns are the value
    cache: str  # the format of a cache of 8 bits; "": the queries' type
    rows: bool = False  # of 656 bytes, which have scales of their own and a rope in bf16
    top_k: int = 0  # entries of the list of keys that each row has; 0: rows see all keys
    lse: bool = False  # the log-sum-exp of each row is wanted, too: ranks share the keys


def dims_of(kind: LatentKind) -> str:
    return f"d{kind.width}" if kind.width == kind.value_dim else f"d{kind.width}/{kind.value_dim}"


def line(kind: LatentKind, sequences: int, queries: int, keys: int, page: int) -> str:
    """One line stands for all calls of its kind: `sequences` sequences of `queries` queries, with keys cut into runs or not."""
    words = ["attention_latent", kind.dtype, f"b{sequences}", f"q{queries}", f"k{keys}", f"h{kind.heads}", dims_of(kind)]
    if queries > 1:
        words.append("causal")
    if kind.lse:
        words.append("lse")
    words.append(f"layout=paged:{64 if page % 64 == 0 else 1 if page == 1 else 16}")
    if kind.cache:
        words.append(f"cache={kind.cache} {'row_scales=128' if kind.rows else 'cache_scales=1'}")
    if kind.top_k:
        words.append(f"top_k={kind.top_k}")
    return " ".join(words)


def lines(kind: LatentKind, sequences: int, rows: int, keys: int, page: int) -> list[str]:
    """Decode, drafts, chunks and prompts. By lists a row goes through the same kernel, whatever rows are beside it."""
    if kind.lse:  # each row is a sequence
        return [line(kind, most, 1, keys, page) for most in sorted({sequences, rows})]
    numbers = {1, 2, *(most // kind.heads + 1 for most in ROWS_OF_KERNELS), rows}
    return [line(kind, sequences, each, max(keys, each), page) for each in sorted(numbers) if each <= rows]


def append_line(kind: LatentKind, page: int) -> str:
    """The rope and the latent as two views of a row, or a row without a rope: keys alone."""
    cache = f" cache={kind.cache} {'row_scales=128' if kind.rows else 'cache_scales=h'}" if kind.cache else ""
    if kind.width == kind.value_dim:
        return f"cache_append {kind.dtype} b1 q1 h1 d{kind.width} page={page} no_values{cache}"
    return f"cache_append {kind.dtype} b1 q1 h1 d{kind.width - kind.value_dim}/{kind.value_dim} page={page}{cache}"


