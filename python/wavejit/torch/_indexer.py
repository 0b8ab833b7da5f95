# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The indexer of sparse attention over tensors, and its operator."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _documented
from .._errors import InvalidArgument
from . import _engines, _dispatch
from ._operators import LIBRARY


@_documented.with_rows_of("sparse_indexer")
def sparse_indexer(queries: torch.Tensor | None, keys: torch.Tensor | None, weights: torch.Tensor | None, top_k: int, *,
                   key_scales: torch.Tensor | None = None, scores: torch.Tensor | None = None, causal: bool = False,
                   window: Sequence[int | None] | None = None, causal_prefix: int | None = None, key_lengths: torch.Tensor | None = None,
                   key_begins: torch.Tensor | None = None, key_ends: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
                   table_starts: torch.Tensor | None = None, max_key_length: int | None = None, return_values: bool = False) -> Any:
    """The keys that each query row is to attend to: int32 [batch, queries, top_k], ascending, −1 behind the last; with
    `return_values` beside their scores, −∞ behind the last.

    queries, keys, weights
        [batch, queries, heads, 128], [batch, keys, 128] or pages [pages, page size, 128] with `block_table`, both of one type,
        16 bits or float8_e4m3fn (on gfx942 float8_e4m3fnuz), and fp32 [batch, queries, heads]. All None: `scores`, fp32 [batch, queries, keys], are given.
    {key_scales}
    {key_begins}

    The rest as in `wavejit.Engine.sparse_indexer`. Of equal scores the lower key is chosen, and the same row has the same
    list whatever the batch. Nothing of it has a gradient. torch.compile traces it as `torch.ops.wavejit.sparse_indexer`.

    >>> import torch, wavejit.torch
    >>> _ = wavejit.torch.use("sim:gfx950")
    >>> wavejit.torch.sparse_indexer(None, None, None, 3, scores=torch.tensor([[[0.5, 2.0, -1.0, 2.0, 0.25]]])).tolist()
    [[[0, 1, 3]]]
    """
    left, right = (None, None) if window is None else window
    indices, values = _operator(queries, keys, weights, top_k, key_scales=key_scales, scores=scores, causal=causal, window_left=-1 if left is None else left,
                                window_right=-1 if right is None else right, causal_prefix=-1 if causal_prefix is None else causal_prefix, key_lengths=key_lengths,
                                key_begins=key_begins, key_ends=key_ends, block_table=block_table, table_starts=table_starts,
                                max_key_length=0 if max_key_length is None else max_key_length, values=return_values)
    return (indices, values) if return_values else indices


# ---- The operator: indices, and values or nothing

ARGUMENTS = (
    "Tensor? queries, Tensor? keys, Tensor? weights, SymInt top_k, *, Tensor? key_scales=None, Tensor? scores=None, bool causal=False, SymInt window_left=-1, "
    "SymInt window_right=-1, SymInt causal_prefix=-1, Tensor? key_lengths=None, Tensor? key_begins=None, Tensor? key_ends=None, Tensor? block_table=None, "
    "Tensor? table_starts=None, SymInt max_key_length=0, bool values=False"
)
LIBRARY.define(f"sparse_indexer({ARGUMENTS}) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))


def _rows(queries: torch.Tensor | None, scores: torch.Tensor | None) -> torch.Tensor:
    """What has a row for each row of the lists."""
    rows = queries if queries is not None else scores
    if rows is None:
        raise InvalidArgument("queries and scores are missing; accepted: one of them")
    if rows.ndim < 2:
        raise InvalidArgument(f"{'scores' if queries is None else 'queries'}: shape {tuple(rows.shape)}; accepted: [batch, queries, ...]")
    return rows


def _lists(queries: torch.Tensor | None, keys: torch.Tensor | None, weights: torch.Tensor | None, top_k: int, *, causal: bool = False, window_left: int = -1,
           window_right: int = -1, causal_prefix: int = -1, max_key_length: int = 0, values: bool = False, **tensors: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    rows = _rows(queries, tensors.get("scores"))
    given: dict[str, Any] = {"queries": queries, "keys": keys, "weights": weights, **tensors}
    for field, tensor in given.items():
        if tensor is not None and tensor.device != rows.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {rows.device}, where the others are")
    engine = _engines.of_device(rows.device, "queries" if queries is not None else "scores")
    given["indices"], scored = _traced(queries, keys, weights, top_k, values=values, scores=tensors.get("scores"))
    given["values"] = scored if values else None
    taken = {field: tensor.detach() if rows.is_cpu else _dispatch._array(engine, field, tensor.detach()) for field, tensor in given.items() if tensor is not None}
    words: dict[str, Any] = {"causal": causal, "causal_prefix": None if causal_prefix == -1 else causal_prefix, "max_key_length": max_key_length or None}
    if (window_left, window_right) != (-1, -1):
        words["window"] = tuple(None if side == -1 else side for side in (window_left, window_right))
    if not rows.is_cpu:
        words["stream"] = _dispatch.current_stream(rows.device)
    engine.call("sparse_indexer", taken.pop("queries", None), taken.pop("keys", None), taken.pop("weights", None), top_k, **taken, **words).launch()
    return given["indices"], scored


def _traced(queries: torch.Tensor | None, keys: torch.Tensor | None, weights: torch.Tensor | None, top_k: int, *, values: bool = False, scores: torch.Tensor | None = None,
            **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    rows = _rows(queries, scores)
    sizes = (rows.shape[0], rows.shape[1], top_k)
    return rows.new_empty(sizes, dtype=torch.int32), rows.new_empty(sizes if values else (0,), dtype=torch.float32)


def _without_gradients(*tensors: Any, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A choice of keys has no gradient, and of scores none is kept."""
    with torch._C._AutoDispatchBelowAutograd():
        return _operator(*tensors, **words)


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
LIBRARY.impl("sparse_indexer", _untraced(_lists), "CompositeExplicitAutograd")
LIBRARY.impl("sparse_indexer", _without_gradients, "Autograd")
torch.library.register_fake("wavejit::sparse_indexer", _traced, lib=LIBRARY)
_operator: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.wavejit.sparse_indexer.default
