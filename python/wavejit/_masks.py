# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of bools and of numbers by tile (docs/sparse.md), where PyTorch and JAX give them: what is known of them before a call.

Nobody sees whether a mask went by tile or as a bias. Of bools: scores that are modified have the bits of a bias of 0 and −∞, and slopes
of 0 modify them and add nothing. Of numbers: the bits are the same where V is finite.
"""
from __future__ import annotations

import itertools

from . import _dtypes
from ._arrays import DeviceArray, dense_strides
from ._dtypes import DType
from ._engine import Engine

# The most rows of a call whose keys may be split (docs/split-keys.md). Masks of bools that all heads share are split, too; walks of other
# masks are not: those are served as a bias.
MOST_ROWS_OF_SPLIT = 32
# The most scores of one head, and the most heads of all batches, that kernels of masks count.
MOST_SCORES, MOST_HEADS = 1 << 33, 0xFFFF
# A bias of numbers may be a mask. One that all heads share nearly always is, and with this many numbers it costs little, beside the call
# itself, to look at them.
# Where nothing is hidden, a call of 16 heads takes 16 % longer at 2²⁰ by the clock (docs/sparse.md).
LEAST_SCORES_OF_NUMBERS = 1 << 20  # of a head
_KEY = "masks by tile"  # of an answer, among what an engine has checked


def fit(batch: int, heads: int, rows: int, keys: int, heads_of_mask: int) -> bool:
    """Whether a mask of bools of `rows` rows and `keys` keys is walked by tile, if `heads_of_mask` heads have masks of their own."""
    return (heads_of_mask == 1 or MOST_ROWS_OF_SPLIT < rows) and rows * keys < MOST_SCORES and batch * heads <= MOST_HEADS


def numbers_fit(batch: int, heads: int, rows: int, keys: int, heads_of_mask: int) -> bool:
    """The same of a mask of numbers."""
    return heads_of_mask == 1 and MOST_ROWS_OF_SPLIT < rows and LEAST_SCORES_OF_NUMBERS <= rows * keys and fit(batch, heads, rows, keys, heads_of_mask)


def have_kernel(engine: Engine, dtype: DType, dim: int, value_dim: int, numbers: DType | None = None) -> bool:
    """Whether the engine's target has a kernel of them, of these head dims; `numbers`: of masks of numbers, in this type."""
    key = (_KEY, dtype, dim, value_dim, numbers)
    known: bool | None = engine._plans.get(key)
    if known is None:
        known = engine._plans[key] = _asked(engine, dtype, dim, value_dim, numbers)
    return known


def _asked(engine: Engine, dtype: DType, dim: int, value_dim: int, numbers: DType | None) -> bool:
    rows, place = 64, itertools.count(1)

    def array(of: DType, *sizes: int) -> DeviceArray:
        return DeviceArray(engine, engine, next(place) << 20, of, sizes, dense_strides(sizes))  # nothing is there, and nothing is read

    q, k, v, out = (array(dtype, 1, rows, 1, size) for size in (dim, dim, value_dim, value_dim))
    if numbers is not None:
        return engine.attention_forward_call(q, k, v, out, bias=array(numbers, 1, 1, rows, rows), bias_by_tile=True).supported()
    return engine.attention_forward_call(q, k, v, out, mask=array(_dtypes.INT8, 1, 1, rows, rows), alibi=array(_dtypes.FP32, 1)).supported()
