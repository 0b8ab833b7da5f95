# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The indexer of sparse attention over tensors."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .._errors import InvalidArgument
from . import _engines, _roads

if TYPE_CHECKING:
    from collections.abc import Sequence


def sparse_indexer(queries: torch.Tensor | None, keys: torch.Tensor | None, weights: torch.Tensor | None, top_k: int, *,
                   key_scales: torch.Tensor | None = None, scores: torch.Tensor | None = None, causal: bool = False,
                   window: Sequence[int | None] | None = None, causal_prefix: int | None = None, key_lengths: torch.Tensor | None = None,
                   key_begins: torch.Tensor | None = None, key_ends: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
                   table_starts: torch.Tensor | None = None, max_key_length: int | None = None, return_values: bool = False) -> Any:
    """The keys that each query row is to attend to: int32 [batch, queries, top_k], ascending, −1 behind the last; with
    `return_values` beside their scores, −∞ behind the last.

    queries, keys, weights
        [batch, queries, heads, 128], [batch, keys, 128] or pages [pages, page size, 128] with `block_table`, and fp32
        [batch, queries, heads]. All None: `scores`, fp32 [batch, queries, keys], are given.

    The rest as in `wavejit.Engine.sparse_indexer`. Of equal scores the lower key is chosen, and the same row has the same
    list whatever the batch. Nothing of it has a gradient.

    >>> import torch, wavejit.torch
    >>> _ = wavejit.torch.use("sim:gfx950")
    >>> wavejit.torch.sparse_indexer(None, None, None, 3, scores=torch.tensor([[[0.5, 2.0, -1.0, 2.0, 0.25]]])).tolist()
    [[[0, 1, 3]]]
    """
    rows = queries if queries is not None else scores
    if rows is None:
        raise InvalidArgument("queries and scores are missing; accepted: one of them")
    tensors = {"queries": queries, "keys": keys, "weights": weights, "key_scales": key_scales, "scores": scores, "key_lengths": key_lengths,
               "key_begins": key_begins, "key_ends": key_ends, "block_table": block_table, "table_starts": table_starts}
    for field, tensor in tensors.items():
        if tensor is not None and tensor.device != rows.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {rows.device}, where the others are")
    engine = _engines.of_device(rows.device, "queries" if queries is not None else "scores")
    sizes = (rows.shape[0], rows.shape[1], top_k)
    indices = torch.empty(sizes, dtype=torch.int32, device=rows.device)
    values = torch.empty(sizes, dtype=torch.float32, device=rows.device) if return_values else None
    outputs = {"indices": indices, "values": values}
    words: dict[str, Any] = {"causal": causal, "window": window, "causal_prefix": causal_prefix, "max_key_length": max_key_length}
    given: dict[str, Any] = {}
    for field, tensor in (*tensors.items(), *outputs.items()):
        if tensor is not None:
            given[field] = tensor.detach() if rows.is_cpu else _roads._array(engine, field, tensor.detach())
    if not rows.is_cpu:
        words["stream"] = _roads.current_stream(rows.device)
    engine.call("sparse_indexer", given.pop("queries", None), given.pop("keys", None), given.pop("weights", None), top_k, **given, **words).launch()
    return indices if values is None else (indices, values)
