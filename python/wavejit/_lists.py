# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of key blocks, as arguments of a call (docs/sparse.md)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BlockLists:
    """Which blocks of keys the blocks of query rows see. All arrays are int32.

    `indices` [batch or 1, heads or 1, row blocks, room] are numbers of key blocks, ascending in a list, and `counts` [batch or 1,
    heads or 1, row blocks] how many of each list count; without counts all do, and −1 is none. With `starts` [lists + 1] the lists
    stand one after the other in `indices` [entries], and `shape` is (batch or 1, heads or 1, row blocks).

    Rows see of these blocks what the mask shows. `full_indices`, `full_counts` and `full_starts` are the same of blocks that they
    see whole. `rows` and `keys` of a block are 64 or 128. `alike` is a hint that shows in no bit: neighbouring lists share most
    of their blocks.

    >>> import numpy, wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> q = k = v = numpy.ones((1, 128, 1, 64), numpy.float16)
    >>> indices = numpy.array([0, 1, 1, 0], numpy.int32).reshape(1, 1, 2, 2)
    >>> lists = wavejit.BlockLists(indices=indices, counts=numpy.array([[[2, 1]]], numpy.int32))
    >>> out, lse = engine.attention_forward(q, k, v, lists=lists, lse=True)
    >>> [round(float(lse.numpy()[0, 0, row] - 8), 3) for row in (0, 127)]    # ln 128, ln 64
    [4.852, 4.159]
    """

    indices: Any = None
    counts: Any = None
    starts: Any = None
    full_indices: Any = None
    full_counts: Any = None
    full_starts: Any = None
    rows: int = 64
    keys: int = 64
    shape: tuple[int, int, int] | None = None
    alike: bool = False
