# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a layer of latent attention and a step to one call of attention_latent, as _calls.py has it for the others."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..torch import _latent_dispatch, _dispatch
from . import _cache, _calls
from ._latent_lines import LatentKind
from ._latent_step import WavejitLatentMetadata


class Words(NamedTuple):
    """The words of a layer's calls that are alike in every step."""

    kind: LatentKind
    scale: float


def attend(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, rope: torch.Tensor | None, kv_cache: torch.Tensor, out: torch.Tensor,
           k_scale: torch.Tensor | None, lists: torch.Tensor | None = None, sums: torch.Tensor | None = None) -> None:
    """Writes out [rows, heads, value dims], and where they are wanted sums [1, heads, rows], from latent [rows, heads, value dims] and rope [rows, heads, the rest]; kv_cache [pages, keys, columns]."""
    (_through_copies if latent.is_cpu else _on_device)(words, metadata, latent, rope, kv_cache, out, k_scale, lists, sums)


def _through_copies(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, rope: torch.Tensor | None, kv_cache: torch.Tensor, out: torch.Tensor,
                    k_scale: torch.Tensor | None, lists: torch.Tensor | None, sums: torch.Tensor | None) -> None:
    cache = _cache.of_type(kv_cache, words.kind.cache).unsqueeze(2)
    given = _all_words(words, metadata, rope, cache, k_scale, lists)
    _, found = _latent_dispatch.run(metadata.serving.engine, latent.unsqueeze(0), cache, out.unsqueeze(0), sums is not None, given)
    if sums is not None:
        # Rows behind the last sequence stay as they are, as out's do.
        owned = int(metadata.query_starts[-1])
        sums[..., :owned].copy_(found[..., :owned])


def _all_words(words: Words, metadata: WavejitLatentMetadata, rope: torch.Tensor | None, cache: torch.Tensor, k_scale: torch.Tensor | None,
               lists: torch.Tensor | None) -> dict[str, Any]:
    given: dict[str, Any] = {"scale": words.scale, "value_dim": words.kind.value_dim, "query_starts": metadata.query_starts, "key_lengths": metadata.key_lengths,
                             "block_table": metadata.block_table, "max_query_length": metadata.max_query_length,
                             "max_key_length": _calls.rounded_up(metadata.max_key_length, metadata.block_table.shape[1] * cache.shape[1])}
    if metadata.max_query_length > 1:  # one row sees all keys
        given["causal"] = True
    if rope is not None:
        given["q_rope"] = rope.unsqueeze(0)
    if k_scale is not None:
        given["k_scale"] = k_scale.reshape(1, 1)
    if lists is not None:
        given["indices"] = lists.unsqueeze(0)
    return given


def _on_device(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, rope: torch.Tensor | None, kv_cache: torch.Tensor, out: torch.Tensor,
               k_scale: torch.Tensor | None, lists: torch.Tensor | None, sums: torch.Tensor | None) -> None:
    latent = _readable(latent)
    rope = None if rope is None else _readable(rope)
    key = (words, latent.stride(), None if rope is None else rope.stride(), kv_cache.shape, kv_cache.stride(), None if lists is None else lists.stride())
    plan = metadata.plans.get(key)
    if plan is None:
        plan = metadata.plans[key] = _planned(words, metadata, latent, rope, kv_cache, out, k_scale, lists)
    workspace = metadata.workspace
    if plan.workspace and (workspace is None or workspace.numel() * 4 < plan.workspace):
        workspace = metadata.workspace = _dispatch._workspace(plan, latent.device)
    room = (0, 0) if not plan.workspace or workspace is None else (workspace.data_ptr(), workspace.numel() * 4)
    # In the order of launch_over (torch/_latent_dispatch.py).
    tensors = (latent.data_ptr(), 0 if rope is None else rope.data_ptr(), kv_cache.data_ptr(), out.data_ptr(), 0, 0 if sums is None else sums.data_ptr(), 0, 0,
               0 if k_scale is None else k_scale.data_ptr())
    numbers = (metadata.query_starts.data_ptr(), 0, metadata.key_lengths.data_ptr(), metadata.block_table.data_ptr(), 0, room[0], 0 if lists is None else lists.data_ptr(), 0,
               0, 0)
    plan.launch(_dispatch.current_stream(latent.device), tensors, numbers, room[1])


def _readable(rows: torch.Tensor) -> torch.Tensor:
    lies_well = rows.stride(2) == 1 and not (rows.stride(0) % 8 or rows.stride(1) % 8 or rows.data_ptr() % _dispatch.ALIGNED)
    return rows if lies_well else rows.contiguous()


def _planned(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, rope: torch.Tensor | None, kv_cache: torch.Tensor, out: torch.Tensor,
             k_scale: torch.Tensor | None, lists: torch.Tensor | None) -> _dispatch.Plan:
    """A call of these shapes, checked once in the engine's life."""
    engine = metadata.serving.engine
    cache = _cache.of_type(kv_cache, words.kind.cache).unsqueeze(2)
    given = _all_words(words, metadata, rope, cache, k_scale, lists)
    table = metadata.block_table
    shapes = ("vllm latent", words, latent.shape, latent.stride(), None if rope is None else rope.stride(), kv_cache.shape, kv_cache.stride(), table.shape, table.stride(),
              given["max_query_length"], given["max_key_length"], None if lists is None else (lists.shape, lists.stride()))
    found = engine._plans.get(shapes)
    if found is None:
        found = _latent_dispatch._planned(engine, shapes, latent.unsqueeze(0), cache, out.unsqueeze(0), words.kind.lse, given)
    return found  # type: ignore[no-any-return]
