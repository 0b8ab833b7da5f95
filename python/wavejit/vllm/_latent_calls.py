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


def attend(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, kv_cache: torch.Tensor, out: torch.Tensor, tensors: _calls.Tensors,
           sums: torch.Tensor | None = None) -> None:
    """Writes out [rows, heads, value dims], and where they are wanted sums [1, heads, rows], from latent [rows, heads, value dims]; kv_cache [pages, keys, columns].
    `tensors`: q_rope [rows, heads, the rest], k_scale, indices [rows, entries], those that there are."""
    (_through_copies if latent.is_cpu else _on_device)(words, metadata, latent, kv_cache, out, tensors, sums)


def _through_copies(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, kv_cache: torch.Tensor, out: torch.Tensor, tensors: _calls.Tensors,
                    sums: torch.Tensor | None) -> None:
    cache = _cache.of_type(kv_cache, words.kind.cache).unsqueeze(2)
    _, found = _latent_dispatch.run(metadata.serving.engine, latent.unsqueeze(0), cache, out.unsqueeze(0), sums is not None, _all_words(words, metadata, cache, tensors))
    if sums is not None:
        # Rows behind the last sequence stay as they are, as out's do.
        owned = int(metadata.query_starts[-1])
        sums[..., :owned].copy_(found[..., :owned])


def _all_words(words: Words, metadata: WavejitLatentMetadata, cache: torch.Tensor, tensors: _calls.Tensors) -> dict[str, Any]:
    given: dict[str, Any] = {"scale": words.scale, "value_dim": words.kind.value_dim, "query_starts": metadata.query_starts, "key_lengths": metadata.key_lengths,
                             "block_table": metadata.block_table, "max_query_length": metadata.max_query_length,
                             "max_key_length": _calls.rounded_up(metadata.max_key_length, metadata.block_table.shape[1] * cache.shape[1])}
    if metadata.max_query_length > 1:  # one row sees all keys
        given["causal"] = True
    # Rows are one batch; a scale is one for all.
    return given | {name: tensor.reshape(1, 1) if name == "k_scale" else tensor.unsqueeze(0) for name, tensor in tensors.items()}


def _on_device(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, kv_cache: torch.Tensor, out: torch.Tensor, tensors: _calls.Tensors,
               sums: torch.Tensor | None) -> None:
    if not _lies_well(latent):
        latent = latent.contiguous()
    rope, lists = tensors.get("q_rope"), tensors.get("indices")
    if rope is not None and not _lies_well(rope):
        rope = rope.contiguous()
        tensors = {**tensors, "q_rope": rope}
    key = (words, latent.stride(), None if rope is None else rope.stride(), kv_cache.shape, kv_cache.stride(), None if lists is None else lists.stride())
    plan = metadata.plans.get(key)
    if plan is None:
        plan = metadata.plans[key] = _planned(words, metadata, latent, kv_cache, out, tensors)
    if plan.workspace > metadata.room:
        metadata.make_room(plan, latent.device)
    at = {**metadata.at, "q": latent.data_ptr(), "k": kv_cache.data_ptr(), "out": out.data_ptr()}
    for name, tensor in tensors.items():
        at[name] = tensor.data_ptr()
    if sums is not None:
        at["lse"] = sums.data_ptr()
    plan.launch(_dispatch.current_stream(latent.device), at, metadata.room)


def _lies_well(rows: torch.Tensor) -> bool:
    return rows.stride(2) == 1 and not (rows.stride(0) % 8 or rows.stride(1) % 8 or rows.data_ptr() % _dispatch.ALIGNED)


def _planned(words: Words, metadata: WavejitLatentMetadata, latent: torch.Tensor, kv_cache: torch.Tensor, out: torch.Tensor, tensors: _calls.Tensors) -> _dispatch.Plan:
    """A call of these shapes, checked once in the engine's life."""
    engine = metadata.serving.engine
    cache = _cache.of_type(kv_cache, words.kind.cache).unsqueeze(2)
    given = _all_words(words, metadata, cache, tensors)
    table = metadata.block_table
    shapes = ("vllm latent", words, latent.shape, latent.stride(), kv_cache.shape, kv_cache.stride(), table.shape, table.stride(), given["max_query_length"],
              given["max_key_length"], *[(name, tensor.shape, tensor.stride()) for name, tensor in tensors.items()])
    found = engine._plans.get(shapes)
    if found is None:
        found = _latent_dispatch._planned(engine, shapes, latent.unsqueeze(0), cache, out.unsqueeze(0), words.kind.lse, given)
    return found
