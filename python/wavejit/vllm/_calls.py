# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a layer and a step to one call of attention_forward: over copies of CPU tensors, or over tensors of the device.

On the device a layer costs a look-up and a launch. The first layer of a kind in a step finds the checked call, which is remembered
by shapes; key lengths are rounded up for it, so that decode does not make a new one each step. The output is vLLM's own tensor.
"""
from __future__ import annotations

from typing import Any

import torch

from .._errors import Unsupported
from ..torch import _dispatch
from ._cache import pages, token_scales
from ._lines import Kind
from ._step import WavejitMetadata

# A bound on keys is rounded up to a multiple of this, or of a sixteenth to an eighth of it where that is more.
LEAST_STEP = 256
# What a layer gives to its calls beside queries, cache and output, by the words of the engine: slopes, sinks, scales.
Tensors = dict[str, torch.Tensor]


class Words:
    """The words of a layer's calls that are alike in every step."""

    def __init__(self, kind: Kind, scale: float) -> None:
        self.kind = kind
        self.given: dict[str, Any] = {"scale": scale}
        if kind.window_left is not None:
            self.given["window_left"] = kind.window_left
        if kind.softcap:
            self.given["softcap"] = kind.softcap
        self.key = (kind, scale)


def attend(words: Words, metadata: WavejitMetadata, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, tensors: Tensors,
           sums: torch.Tensor | None = None) -> None:
    """Writes output[:num_actual_tokens], and of a kind with LSE sums [1, heads, num_actual_tokens]."""
    rows = metadata.num_actual_tokens
    if rows == 0:
        return
    if query.shape[0] != rows:
        query = query.narrow(0, 0, rows)
    if output.shape[0] != rows:
        output = output.narrow(0, 0, rows)
    way = _through_copies if query.is_cpu else _on_device
    causal = metadata.causal
    if isinstance(causal, bool):
        way(words, metadata, causal, query, kv_cache, output, tensors, sums)
        return
    # Each sequence says whether it is causal: both are computed, and each row has its own.
    both: tuple[torch.Tensor, ...] = torch.empty_like(output), torch.empty_like(output)
    for out, as_causal in zip(both, (True, False)):
        way(words, metadata, as_causal, query, kv_cache, out, tensors, None)
    if words.kind.output:  # bytes, of which one is chosen
        output, both = output.view(torch.uint8), tuple(out.view(torch.uint8) for out in both)
    of = torch.bucketize(torch.arange(rows, device=query.device, dtype=torch.int32), metadata.query_starts[1:], right=True)
    told = causal[of.clamp(max=causal.shape[0] - 1)]
    # Rows behind the last sequence have no flag, and stay as they are.
    owned = (of < metadata.query_starts.shape[0] - 1).view(-1, 1, 1)
    output.copy_(torch.where(owned, torch.where(told.view(-1, 1, 1), both[0], both[1]), output))


def _all_words(words: Words, metadata: WavejitMetadata, causal: bool, kv_cache: torch.Tensor, tensors: Tensors) -> dict[str, Any]:
    given = {**words.given, **tensors, "causal": causal, "query_starts": metadata.query_starts, "key_lengths": metadata.key_lengths, "block_table": metadata.block_table,
             "max_query_length": metadata.max_query_length, "max_key_length": rounded_up(metadata.max_key_length, metadata.block_table.shape[1] * kv_cache.shape[2])}
    if not causal and "window_left" in given:
        # vLLM's own backends have a window of w keys on both sides then, each with the row's own key: drafts are made of such layers.
        given["window_right"] = given["window_left"]
    if words.kind.tokens:
        given["k_scale"], given["v_scale"] = token_scales(kv_cache, words.kind.head_dim + words.kind.value_dim)
    elif words.kind.cache:  # one for all, or one for each kv head
        given.update({name: tensors[name] if tensors[name].ndim == 1 else tensors[name].reshape(-1) for name in ("k_scale", "v_scale")})
    return given


def rounded_up(keys: int, most: int) -> int:
    """A bound on keys that stays the same for many steps, and is at most an eighth beyond them, or LEAST_STEP."""
    step = max(LEAST_STEP, 1 << max(0, keys.bit_length() - 4))
    return max(1, min(-(-keys // step) * step, most))


def _through_copies(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, tensors: Tensors,
                    sums: torch.Tensor | None) -> None:
    k, v = pages(kv_cache, words.kind.head_dim, words.kind.value_dim, words.kind.cache)
    # Into vLLM's own tensor, as on the device: rows behind the last sequence stay as they are.
    _dispatch.copied_into(metadata.serving.engine, query.unsqueeze(0), k, v, output.unsqueeze(0), sums, _all_words(words, metadata, causal, kv_cache, tensors))


def _on_device(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, tensors: Tensors,
               sums: torch.Tensor | None) -> None:
    if not query.stride(2) == 1 or query.stride(0) % 8 or query.stride(1) % 8 or query.data_ptr() % _dispatch.ALIGNED:
        query = query.contiguous()
    scales = (tensors["k_scale"].numel(), tensors["v_scale"].numel()) if "k_scale" in tensors else None
    key = (words.key, causal, query.stride(), kv_cache.shape, kv_cache.stride(), scales)
    plan = metadata.plans.get(key)
    if plan is None:
        plan = metadata.plans[key] = _planned(words, metadata, causal, query, kv_cache, output, tensors)
    if not output.is_contiguous():
        raise Unsupported(f"wavejit.vllm: output: strides {output.stride()}; accepted: rows one behind the other, as vLLM makes it")
    if plan.workspace > metadata.room:
        metadata.make_room(plan, query.device)
    k, kind = kv_cache.data_ptr(), words.kind
    at = {**metadata.at, "q": query.data_ptr(), "k": k, "v": k + kind.head_dim * kv_cache.element_size(), "out": output.data_ptr()}
    for name, tensor in tensors.items():
        at[name] = tensor.data_ptr()
    if kind.tokens:
        at["k_scale"] = k + kind.head_dim + kind.value_dim
        at["v_scale"] = at["k_scale"] + 4
    if sums is not None:
        at["lse"] = sums.data_ptr()
    plan.launch(_dispatch.current_stream(query.device), at, metadata.room)


def _planned(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, tensors: Tensors) -> _dispatch.Plan:
    """A call of these shapes, checked once in the engine's life."""
    engine = metadata.serving.engine
    given = _all_words(words, metadata, causal, kv_cache, tensors)
    table = metadata.block_table
    shapes = ("vllm", words.key, causal, query.shape, query.stride(), kv_cache.shape, kv_cache.stride(), table.shape, table.stride(), given["max_query_length"],
              given["max_key_length"], *[tensor.numel() for tensor in tensors.values()])
    found = engine._plans.get(shapes)
    if found is None:
        k, v = pages(kv_cache, words.kind.head_dim, words.kind.value_dim, words.kind.cache)
        found = _dispatch._planned(engine, shapes, query.unsqueeze(0), k, v, words.kind.lse, given, output.unsqueeze(0) if words.kind.output else None)
        if found.dense != _dispatch.READ_AS_THEY_LIE:
            raise Unsupported(f"wavejit.vllm: kv_cache: strides {kv_cache.stride()}; accepted: multiples of 8 elements, 16 where they have 8 bits")
    return found
