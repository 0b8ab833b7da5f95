# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of a model as the problem descriptors of all calls that an engine may make of it (docs/problem-descriptors.md)."""
from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What layers have alike that go through the same kernels."""

    dtype: str  # of queries and output
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    window_left: int | None  # the keys that a row sees before its own, and behind it if not causal; None: all
    softcap: float
    sinks: bool
    alibi: bool
    cache: str  # the format of a cache of 8 bits; "": the queries' type
    tokens: bool = False  # such a cache has a scale for each token and head, behind the token's numbers
    lse: bool = False  # the log-sum-exp of each row is wanted, too: ranks share the keys
    output: str = ""  # the format of an output of 8 bits; "": the queries' type


def append_line(kind: Kind, page: int) -> str:
    """New keys and values into the cache: one kernel, whatever the number of rows."""
    dims = f"d{kind.head_dim}" if kind.head_dim == kind.value_dim else f"d{kind.head_dim}/{kind.value_dim}"
    cache = f" cache={kind.cache} cache_scales={'token' if kind.tokens else 'h'}" if kind.cache else ""
    return f"cache_append {kind.dtype} b1 q1 h{kind.kv_heads} {dims} page={page}:hnd{cache}"


def line(kind: Kind, sequences: int, rows: int, keys: int, page: int, causal: bool = True) -> str:
    """One line stands for every mix of prompts, chunks and decode of up to `sequences` sequences, `rows` rows of a sequence and `keys` keys."""
    # A line has two sequences and more, since only such a line stands for mixes.
    queries = "q1" if kind.lse else f"q1..{rows}"  # each row is a sequence, where ranks share keys
    most = max(sequences, rows) if kind.lse else sequences
    words = ["attention_forward", kind.dtype, f"b{max(2, most)}", queries, f"k0..{keys}", f"h{kind.heads}/{kind.kv_heads}"]
    words.append(f"d{kind.head_dim}" if kind.head_dim == kind.value_dim else f"d{kind.head_dim}/{kind.value_dim}")
    if causal:
        words.append("causal")
    if kind.window_left is not None:
        words.append(f"window={kind.window_left},-1" if causal else f"window={kind.window_left},{kind.window_left}")
    if kind.lse:
        words.append("lse")
    if kind.output:
        words.append(f"o={kind.output}")
    # Pages that hold whole tiles have kernels of their own, and so have the others.
    words.append(f"layout=paged:{64 if page % 64 == 0 else 1 if page == 1 else 16}")
    if kind.cache:
        words.append(f"cache={kind.cache} cache_scales={'token' if kind.tokens else '1'}")
    if kind.alibi:
        words.append("alibi=h")
    if kind.sinks:
        words.append("sink")
    if kind.softcap:
        words.append(f"softcap={kind.softcap:g}")
    return " ".join(words)
