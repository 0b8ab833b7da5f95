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
from ._cache import Scales, pages, token_scales
from ._lines import Kind
from ._step import WavejitMetadata

# A bound on keys is rounded up to a multiple of this, or of a sixteenth to an eighth of it where that is more.
LEAST_STEP = 256
NONE_BEHIND = _dispatch.NO_TENSORS[_dispatch.TENSORS.index("v_scale") + 1:]


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


def attend(words: Words, metadata: WavejitMetadata, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, slopes: torch.Tensor | None,
           sinks: torch.Tensor | None, scales: Scales | None, sums: torch.Tensor | None = None, o_scale: torch.Tensor | None = None) -> None:
    """Writes output[:num_actual_tokens], and of a kind with LSE sums [1, heads, num_actual_tokens]. `o_scale`: of an output of 8 bits."""
    rows = metadata.num_actual_tokens
    if rows == 0:
        return
    if query.shape[0] != rows:
        query = query.narrow(0, 0, rows)
    if output.shape[0] != rows:
        output = output.narrow(0, 0, rows)
    causal = metadata.causal
    if isinstance(causal, bool):
        _attend(words, metadata, causal, query, kv_cache, output, slopes, sinks, scales, sums, o_scale)
        return
    # Each sequence says whether it is causal: both are computed, and each row has its own.
    both = torch.empty_like(output), torch.empty_like(output)
    for out, told in zip(both, (True, False)):
        _attend(words, metadata, told, query, kv_cache, out, slopes, sinks, scales, None, o_scale)
    if o_scale is not None:  # bytes, of which one is chosen
        output, both = output.view(torch.uint8), tuple(out.view(torch.uint8) for out in both)
    of = torch.bucketize(torch.arange(rows, device=query.device, dtype=torch.int32), metadata.query_starts[1:], right=True)
    told = causal[of.clamp(max=causal.shape[0] - 1)]
    # Rows behind the last sequence have no flag, and stay as they are.
    owned = (of < metadata.query_starts.shape[0] - 1).view(-1, 1, 1)
    output.copy_(torch.where(owned, torch.where(told.view(-1, 1, 1), *both), output))


def _attend(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, slopes: torch.Tensor | None,
            sinks: torch.Tensor | None, scales: Scales | None, sums: torch.Tensor | None = None, o_scale: torch.Tensor | None = None) -> None:
    way = _through_copies if query.is_cpu else _on_device
    way(words, metadata, causal, query, kv_cache, output, slopes, sinks, scales, sums, o_scale)


def _all_words(words: Words, metadata: WavejitMetadata, causal: bool, kv_cache: torch.Tensor, slopes: torch.Tensor | None, sinks: torch.Tensor | None,
               scales: Scales | None, o_scale: torch.Tensor | None = None) -> dict[str, Any]:
    given = {**words.given, "causal": causal, "query_starts": metadata.query_starts, "key_lengths": metadata.key_lengths, "block_table": metadata.block_table,
             "max_query_length": metadata.max_query_length, "max_key_length": rounded_up(metadata.max_key_length, metadata.block_table.shape[1] * kv_cache.shape[2])}
    if not causal and "window_left" in given:
        # vLLM's own backends have a window of w keys on both sides then, each with the row's own key: drafts are made of such layers.
        given["window_right"] = given["window_left"]
    for name, tensor in (("alibi", slopes), ("sinks", sinks), ("o_scale", o_scale)):
        if tensor is not None:
            given[name] = tensor
    if words.kind.tokens:
        given["k_scale"], given["v_scale"] = token_scales(kv_cache, words.kind.head_dim + words.kind.value_dim)
    elif scales is not None:
        # One for all, or one for each kv head.
        given["k_scale"], given["v_scale"] = (scale.reshape(-1) for scale in scales)
    return given


def rounded_up(keys: int, most: int) -> int:
    """A bound on keys that stays the same for many steps, and is at most an eighth beyond them, or LEAST_STEP."""
    step = max(LEAST_STEP, 1 << max(0, keys.bit_length() - 4))
    return max(1, min(-(-keys // step) * step, most))


def _through_copies(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor,
                    slopes: torch.Tensor | None, sinks: torch.Tensor | None, scales: Scales | None, sums: torch.Tensor | None, o_scale: torch.Tensor | None) -> None:
    k, v = pages(kv_cache, words.kind.head_dim, words.kind.value_dim, words.kind.cache)
    given = _all_words(words, metadata, causal, kv_cache, slopes, sinks, scales, o_scale)
    # Into vLLM's own tensor, as on the device: rows behind the last sequence stay as they are.
    _dispatch.copied_into(metadata.serving.engine, query.unsqueeze(0), k, v, output.unsqueeze(0), sums, given)


def _on_device(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor,
               slopes: torch.Tensor | None, sinks: torch.Tensor | None, scales: Scales | None, sums: torch.Tensor | None, o_scale: torch.Tensor | None) -> None:
    if not query.stride(2) == 1 or query.stride(0) % 8 or query.stride(1) % 8 or query.data_ptr() % _dispatch.ALIGNED:
        query = query.contiguous()
    key = (words.key, causal, query.stride(), kv_cache.shape, kv_cache.stride())
    plan = metadata.plans.get(key)
    if plan is None:
        plan = metadata.plans[key] = _planned(words, metadata, causal, query, kv_cache, slopes, sinks, scales, output, o_scale)
    if not output.is_contiguous():
        raise Unsupported(f"wavejit.vllm: output: strides {output.stride()}; accepted: rows one behind the other, as vLLM makes it")
    k = kv_cache.data_ptr()
    if words.kind.tokens:
        behind = k + words.kind.head_dim + words.kind.value_dim
        of_cache = (behind, behind + 4)
    else:
        of_cache = (0, 0) if scales is None else (scales[0].data_ptr(), scales[1].data_ptr())
    # q, k, v, o and lse; then in the order of _dispatch.TENSORS, of which vLLM has none behind v_scale.
    tensors = (query.data_ptr(), k, k + words.kind.head_dim * kv_cache.element_size(), output.data_ptr(), _address(sums), 0, _address(sinks), _address(slopes), *of_cache, *NONE_BEHIND)
    workspace = metadata.workspace
    if plan.workspace and (workspace is None or workspace.numel() * 4 < plan.workspace):
        workspace = metadata.workspace = _dispatch._workspace(plan, query.device)
    given = (0, 0) if not plan.workspace or workspace is None else (workspace.data_ptr(), workspace.numel() * 4)
    # In the order of _dispatch.NUMBERS, and the workspace.
    numbers = (metadata.query_starts.data_ptr(), 0, metadata.key_lengths.data_ptr(), metadata.block_table.data_ptr(), 0, 0, 0, _address(o_scale), given[0])
    plan.launch(_dispatch.current_stream(query.device), tensors, numbers, given[1])


def _address(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _planned(words: Words, metadata: WavejitMetadata, causal: bool, query: torch.Tensor, kv_cache: torch.Tensor, slopes: torch.Tensor | None,
             sinks: torch.Tensor | None, scales: Scales | None, output: torch.Tensor, o_scale: torch.Tensor | None) -> _dispatch.Plan:
    """A call of these shapes, checked once in the engine's life."""
    engine = metadata.serving.engine
    given = _all_words(words, metadata, causal, kv_cache, slopes, sinks, scales, o_scale)
    table = metadata.block_table
    shapes = ("vllm", words.key, causal, query.shape, query.stride(), kv_cache.shape, kv_cache.stride(), table.shape, table.stride(), given["max_query_length"],
              given["max_key_length"])
    found = engine._plans.get(shapes)
    if found is None:
        k, v = pages(kv_cache, words.kind.head_dim, words.kind.value_dim, words.kind.cache)
        found = _dispatch._planned(engine, shapes, query.unsqueeze(0), k, v, words.kind.lse, given, None if o_scale is None else output.unsqueeze(0))
        if found.dense != _dispatch.READ_AS_THEY_LIE:
            raise Unsupported(f"wavejit.vllm: kv_cache: strides {kv_cache.stride()}; accepted: multiples of 8 elements, 16 where they have 8 bits")
    return found  # type: ignore[no-any-return]
